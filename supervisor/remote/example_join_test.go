package remote_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/remote"
)

// loadCertificate reads what both machines need: a certificate of their own, and the authority that signs those of all machines. A
// machine's certificate names its host or address, and as a URI its identity: "mcpvisor://cluster/agent/7".
func loadCertificate(dir string) (remote.Config, error) {
	cert, err := tls.LoadX509KeyPair(dir+"/cert.pem", dir+"/key.pem")
	if err != nil {
		return remote.Config{}, err
	}
	authority, err := os.ReadFile(dir + "/ca.pem")
	if err != nil {
		return remote.Config{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return remote.Config{}, errors.New("ca.pem holds no certificate")
	}
	return remote.Config{Certificate: cert, CA: pool}, nil
}

// The machine with the servers: all agents of the cluster may read and call what it manages, until the program is interrupted.
// TestCommandsOverMutualTLS runs the same between two processes, because protoactor's remote allows one of them in each.
func ExampleServe() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	own, _, err := supervisor.FromFiles(".")
	if err != nil {
		log.Fatal(err)
	}
	m, err := supervisor.Start(ctx, own)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	cfg, err := loadCertificate("/etc/mcpvisor/tls")
	if err != nil {
		log.Fatal(err)
	}
	cfg.Host, cfg.Port = "10.0.0.5", 7070
	cfg.Rights = map[string]remote.Rights{
		"mcpvisor://cluster/agent/*": {Servers: []string{"*"}, Commands: append(remote.ReadingCommands(), "CallTool")},
	}
	server, err := remote.Serve(m, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	<-ctx.Done()
}

// The machine with an agent: any of its actors sends the commands of package messages to the manager on the other machine. The outcome
// of the call stands in the reply; a refusal is a reply, too.
func ExampleJoin() {
	cfg, err := loadCertificate("/etc/mcpvisor/tls")
	if err != nil {
		log.Fatal(err)
	}
	cfg.Host = "10.0.0.7" // the manager opens a connection to it for its replies
	system := actor.NewActorSystem()
	peer, err := remote.Join(system, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer peer.Close()
	reply, err := system.Root.RequestFuture(remote.PID("10.0.0.5:7070"),
		&messages.CallTool{Server: "files", Tool: "read_file", Arguments: []byte(`{"path":"/srv/notes"}`)}, time.Minute).Result()
	answer, ok := reply.(*messages.CallToolReply)
	switch {
	case err != nil:
		fmt.Println("no answer, and whether the tool has run is not known:", err)
	case !ok:
		fmt.Printf("%T in the place of a reply\n", reply)
	case answer.GetFailure() != nil:
		fmt.Println(answer.GetOutcome()+":", answer.GetFailure().GetText())
	default:
		fmt.Printf("%s\n", answer.GetResult())
	}
}
