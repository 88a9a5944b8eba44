package steer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
)

func TestReasonKnowsWhatSteers(t *testing.T) {
	for name := range strings.FieldsSeq(`PATH Path pathext LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES GLIBC_TUNABLES GCONV_PATH LOCPATH
		NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED PYTHONPATH PYTHONUSERBASE PYTHONWARNINGS PYTHONSTARTUP
		PERL5DB PERL5OPT RUBYOPT BUN_OPTIONS BUN_CONFIG_REGISTRY DENO_DIR DENO_CERT CORECLR_PROFILER_PATH DOTNET_STARTUP_HOOKS
		_JAVA_OPTIONS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS CLASSPATH OPENSSL_CONF SSL_CERT_FILE ssl_cert_dir SSLKEYLOGFILE
		HOME USERPROFILE XDG_CONFIG_HOME xdg_data_dirs TMPDIR HTTPS_PROXY https_proxy all_proxy no_proxy REQUESTS_CA_BUNDLE
		DOCKER_HOST DOCKER_CONFIG COMPOSE_FILE KUBECONFIG GOTOOLCHAIN GOFLAGS GOPROXY GOCACHEPROG GODEBUG CARGO_HOME
		CARGO_BUILD_RUSTC_WRAPPER RUSTC_WRAPPER RUSTFLAGS UV_INDEX_URL PIP_INDEX_URL npm_config_registry Npm_Config_Registry
		NPM_CONFIG_USERCONFIG YARN_RC_FILENAME COREPACK_NPM_REGISTRY MCPVISOR_PASSPHRASE GIT_SSH_COMMAND GIT_CONFIG_COUNT
		BASH_ENV ENV BASH_FUNC_ls%% PROMPT_COMMAND PS4 SHELLOPTS EDITOR PAGER BROWSER SSH_ASKPASS LESSOPEN ComSpec VIRTUAL_ENV
		AWS_CONFIG_FILE GH_BROWSER LANGUAGE`) {
		if why, steers := steer.Reason(name); !steers || why == "" {
			t.Errorf("%s is not known", name)
		}
		if steer.Harmless(name) {
			t.Errorf("%s is called harmless", name)
		}
	}
	for _, name := range []string{"", "LD_PRELOAD=/tmp/x", "A\x00B", "\xffPATH", " PATH", "HTTP\u017f_PROXY", " HOME "} {
		if _, steers := steer.Reason(name); !steers {
			t.Errorf("%q is not known", name)
		}
		if steer.Harmless(name) {
			t.Errorf("%q is called harmless", name)
		}
	}
}

func TestReasonLeavesOtherNames(t *testing.T) {
	for name := range strings.FieldsSeq(`API_KEY GITHUB_TOKEN GITHUB_PERSONAL_ACCESS_TOKEN GOOGLE_API_KEY GOOGLE_APPLICATION_CREDENTIALS GH_TOKEN
		OPENAI_API_KEY DATABASE_URL PERPLEXITY_API_KEY AWS_REGION AWS_PROFILE AWS_ACCESS_KEY_ID SLACK_BOT_TOKEN PORT
		PIPEDREAM_KEY GOTIFY_URL PYTHONUNBUFFERED NODE_ENV LANG LC_ALL RUST_LOG`) {
		if why, steers := steer.Reason(name); steers {
			t.Errorf("%s steers: %s", name, why)
		}
	}
}

func TestHarmlessIsShort(t *testing.T) {
	for name := range strings.FieldsSeq("LANG LC_ALL lc_messages TZ TERM NO_COLOR LOG_LEVEL DEBUG NODE_ENV PYTHONUNBUFFERED RUST_LOG") {
		if !steer.Harmless(name) {
			t.Errorf("%s is not harmless", name)
		}
	}
	for name := range strings.FieldsSeq("API_KEY BASE_URL LC_ LC_ALL=x LC_../x LANGUAGE NODE_ENV=x") {
		if steer.Harmless(name) {
			t.Errorf("%s is called harmless", name)
		}
	}
}

func TestHarmlessValueLeadsNowhere(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"LANG", "de_DE.UTF-8", true}, {"LANG", "../../tmp/x", false}, {"LC_ALL", "/tmp/x", false},
		{"TZ", "Europe/Berlin", true}, {"TZ", "/tmp/x", false}, {"TZ", ":/tmp/x", false}, {"tz", "../x", false},
		{"TERM", "xterm-256color", true}, {"TERM", "a/b", false}, {"NODE_ENV", "production", true},
		{"DEBUG", "mcp:*,-x", true}, {"DEBUG", "a\nb", false}, {"DEBUG", "$(id)", false}, {"DEBUG", "%n", false},
		{"RUST_LOG", "info,hyper=debug", true}, {"DEBUG", strings.Repeat("x", 257), false}, {"NODE_ENV", "", true},
	} {
		if got := steer.HarmlessValue(c.name, c.value); got != c.want {
			t.Errorf("%s=%q: %v", c.name, c.value, got)
		}
	}
}

func ExampleReason() {
	for _, name := range []string{"Npm_Config_Registry", "LD_AUDIT", "API_KEY"} {
		if why, steers := steer.Reason(name); steers {
			fmt.Println(name, "changes", why)
		}
	}
	// Output:
	// Npm_Config_Registry changes which packages are installed, and where from
	// LD_AUDIT changes which code is loaded into every program
}
