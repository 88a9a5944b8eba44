package conntest

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// ContractConfig reaches url with the secret of a contract test in every place that can hold one.
func ContractConfig(t *testing.T, url string, o transporttest.Options) web.Config {
	return web.Config{
		URL:        url + "?key=" + o.Secret,
		Headers:    map[string]string{"Authorization": "Bearer " + o.Secret, "X-Key": o.Secret},
		MaxMessage: o.MaxMessage,
		Client:     OwnClient(t),
	}
}

// BrokenConfigs is every way in which the first exchange with a server can fail before there is one.
func BrokenConfigs(make func(web.Config) transports.Transport) map[string]func(
	*testing.T, transporttest.Options) (transports.Transport, messages.Class) {
	type result = func(*testing.T, transporttest.Options) (transports.Transport, messages.Class)
	bad := func(change func(*web.Config)) result {
		return func(t *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
			cfg := ContractConfig(t, "http://127.0.0.1:1/", o)
			change(&cfg)
			return make(cfg), messages.ClassConfig
		}
	}
	return map[string]result{
		"relative URL":  bad(func(c *web.Config) { c.URL = "/mcp?key=" + c.Headers["X-Key"] }),
		"no host":       bad(func(c *web.Config) { c.URL = "http:///" + c.Headers["X-Key"] }),
		"other scheme":  bad(func(c *web.Config) { c.URL = "ftp://host/" + c.Headers["X-Key"] }),
		"no URL at all": bad(func(c *web.Config) { c.URL = "http://%zz" + c.Headers["X-Key"] }),
		"header value":  bad(func(c *web.Config) { c.Headers["X-Key"] += "\nInjected: 1" }),
		"header name":   bad(func(c *web.Config) { c.Headers["X Key"] = c.Headers["X-Key"] }),
	}
}
