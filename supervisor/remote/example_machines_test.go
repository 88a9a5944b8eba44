//go:build !race

// The race detector finds a race in the end of protoactor's remote: see beManager.

package remote_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/remote"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// signers signs the certificates of all machines. Outside of a test they come from files: tls.LoadX509KeyPair, and
// x509.CertPool.AppendCertsFromPEM for the authority.
type signers struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

// newSigners makes an authority for one hour.
func newSigners() (signers, error) {
	s := signers{pool: x509.NewCertPool(), cert: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}}
	var err error
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return s, err
	}
	der, err := x509.CreateCertificate(rand.Reader, s.cert, s.cert, &s.key.PublicKey, s.key)
	if err != nil {
		return s, err
	}
	s.cert, err = x509.ParseCertificate(der)
	s.pool.AddCert(s.cert)
	return s, err
}

// sign makes what one machine needs: a certificate that names its address, and as a URI its identity. A machine is server and client.
func (s signers) sign(identity string) (remote.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return remote.Config{}, err
	}
	uri, err := url.Parse(identity)
	if err != nil {
		return remote.Config{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: s.cert.NotBefore, NotAfter: s.cert.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, URIs: []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, s.cert, &key.PublicKey, s.key)
	return remote.Config{Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, CA: s.pool}, err
}

// serveServers is the machine with the servers: the agents of the cluster may read all of them, and call their tools.
func serveServers(m *supervisor.Manager, cfg remote.Config) (*remote.Server, error) {
	cfg.Rights = map[string]remote.Rights{
		"mcpvisor://cluster/agent/*": {Servers: []string{"*"}, Commands: append(remote.ReadingCommands(), "CallTool")},
	}
	return remote.Serve(m, cfg) // cfg.Host and cfg.Port say where, 127.0.0.1 and a free port without them
}

// runAgent is the machine with an agent: any of its actors sends the commands of package messages to the manager on the other one. The
// outcome of a call stands in the reply; a refusal is a reply, too.
func runAgent(cfg remote.Config, address string) error {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	peer, err := remote.Join(system, cfg) // it listens as well: the manager opens a connection for its replies
	if err != nil {
		return err
	}
	defer peer.Close()
	for _, command := range []any{
		&messages.CallTool{Server: "files", Tool: "read", Arguments: []byte(`{"path":"/srv/notes"}`)},
		&messages.RemoveServer{Name: "files"},
	} {
		reply, err := system.Root.RequestFuture(remote.PID(address), command, time.Minute).Result()
		if err != nil {
			return fmt.Errorf("no answer, and whether it was done is not known: %w", err)
		}
		switch r := reply.(type) {
		case *messages.CallToolReply:
			fmt.Printf("call: %s %s%s\n", r.GetOutcome(), r.GetResult(), r.GetFailure().GetText())
		case *messages.Done:
			fmt.Println("remove:", r.GetFailure().GetText())
		}
	}
	return nil
}

// Two machines, each with a certificate of the cluster's authority. Here both are parts of one process.
func Example() {
	cluster, err := newSigners()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisortest.AddTo(supervisor.Config{CallWait: time.Minute},
		supervisortest.NewServer("files", supervisortest.Text("read", "hello"))))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	own, err := cluster.sign("mcpvisor://cluster/servers")
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := serveServers(m, own)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	agent, err := cluster.sign("mcpvisor://cluster/agent/7")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := runAgent(agent, server.PID().GetAddress()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// call: result {"content":[{"text":"hello","type":"text"}],"isError":false}
	// remove: the peer "mcpvisor://cluster/agent/7" may not send RemoveServer
}
