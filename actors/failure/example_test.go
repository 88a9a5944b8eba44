package failure_test

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/actors/failure"
)

func ExampleExplain() {
	cause := failure.Explain(`node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/home/user/server/dist/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
`)
	fmt.Println(cause.Line)
	fmt.Println(cause.Reason)
	fmt.Println(cause.Fix)
	// Output:
	// Error: Cannot find module '/home/user/server/dist/index.js'
	// node finds no file "/home/user/server/dist/index.js"
	// correct the path in "args"; if it is a result of a build, build it (npm install, npm run build)
}
