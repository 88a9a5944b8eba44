package failure

// containers are the failures of docker and podman themselves, before the server in the container has started.
var containers = []knownFailure{
	{
		// The socket of the daemon belongs to root and to the group docker.
		name: "docker-permission", sign: "permission denied while trying to connect to the",
		pattern: `permission denied while trying to connect to the (?:Docker daemon socket|docker API) at (\S+?):? `,
		reason:  "you may not use the docker daemon at {1}",
		fix:     "let this user be a member of the group docker and sign in again, or use docker without root",
	},
	{
		// Docker up to version 28 uses these words, later ones those of the next row.
		name: "docker-no-daemon", sign: "daemon running?",
		pattern: `Cannot connect to the Docker daemon at (\S+?)\. Is the docker daemon running\?`,
		reason:  "no docker daemon answers at {1}",
		fix:     "start docker, or correct DOCKER_HOST",
	},
	{
		// The words of docker 29, whose text ends with the error of the socket.
		name: "docker-no-daemon-api", sign: "failed to connect to the docker API",
		pattern: `failed to connect to the docker API at (\S+?);`,
		reason:  "no docker daemon answers at {1}",
		fix:     "start docker, or correct DOCKER_HOST",
	},
	{
		name: "docker-bad-image", sign: "invalid reference format",
		pattern: `docker: invalid reference format(?:: (.*))?`,
		reason:  "the name of the image is not valid (<1>)",
		fix:     "correct it in \"args\": it is the first word that is no option",
	},
	{
		// Docker does not tell a missing image from a private one, so neither does the reason.
		name: "docker-unknown-image", sign: "pull access denied for ",
		pattern: `pull access denied for (\S+?),`,
		reason:  "docker finds no image {1}, or may not see it",
		fix:     "correct its name in \"args\"; if it is a private one, sign in with docker login",
	},
	{
		// The registry knows the image, but not this tag or digest of it.
		name: "docker-unknown-tag", sign: "manifest ",
		pattern: `manifest (?:for )?(\S+)(?: not found)?: manifest unknown`,
		reason:  "docker finds no version {1} of the image",
		fix:     "correct the tag in \"args\"",
	},
	{
		// The daemon says this after the image was found: only the words behind its name can be wrong.
		name: "docker-missing-program", sign: "executable file not found in $PATH",
		pattern: `exec: "(.*?)": executable file not found in \$PATH`,
		reason:  "the image has no program {1}",
		fix:     "correct what follows the image's name in \"args\"",
	},
	{
		// An MCP server has a pipe as its standard input, so -t can never work.
		name: "docker-no-terminal", sign: "the input device is not a TTY",
		pattern: `the input device is not a TTY`,
		reason:  "docker is asked for a terminal (-t), and there is none",
		fix:     "write -i and not -it in \"args\"",
	},
	{
		// --mount demands that the folder exists; -v would make an empty one.
		name: "docker-missing-folder", sign: "bind source path does not exist",
		pattern: `bind source path does not exist: (\S+)`,
		reason:  "there is no folder {1} to mount into the container",
		fix:     "make it, or correct the path in \"args\"",
	},
	{
		// Without --rm the container of the last run still exists under its name.
		name: "docker-name-taken", sign: "The container name ",
		pattern: `The container name "(.*?)" is already in use`,
		reason:  "there is a container of the name {1} already",
		fix:     "leave --name out of \"args\", or add --rm and remove the old one (docker rm -f)",
	},
}
