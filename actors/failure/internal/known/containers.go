package known

// containers are the failures of docker and podman themselves, before the server in the container has started.
var containers = []Failure{
	{
		// The socket of the daemon belongs to root and to the group docker.
		Name: "docker-permission", Sign: "permission denied while trying to connect to the",
		Pattern: `permission denied while trying to connect to the (?:Docker daemon socket|docker API) at (\S+?):? `,
		Reason:  "you may not use the docker daemon at {1}",
		Fix:     "let this user be a member of the group docker and sign in again, or use docker without root",
	},
	{
		// Docker up to version 28 uses these words, later ones those of the next row.
		Name: "docker-no-daemon", Sign: "daemon running?",
		Pattern: `Cannot connect to the Docker daemon at (\S+?)\. Is the docker daemon running\?`,
		Reason:  "no docker daemon answers at {1}",
		Fix:     "start docker, or correct DOCKER_HOST",
	},
	{
		// The words of docker 29, whose text ends with the error of the socket.
		Name: "docker-no-daemon-api", Sign: "failed to connect to the docker API",
		Pattern: `failed to connect to the docker API at (\S+?);`,
		Reason:  "no docker daemon answers at {1}",
		Fix:     "start docker, or correct DOCKER_HOST",
	},
	{
		// Most often an upper-case letter in the name; the words behind the colon say so where docker has any.
		Name: "docker-bad-image", Sign: "invalid reference format",
		Pattern: `docker: invalid reference format(?:: (.*))?`,
		Reason:  "the name of the image is not valid (<1>)",
		Fix:     "correct it in \"args\": it is the first word that is no option",
	},
	{
		// Docker does not tell a missing image from a private one, so neither does the reason.
		Name: "docker-unknown-image", Sign: "pull access denied for ",
		Pattern: `pull access denied for (\S+?),`,
		Reason:  "docker finds no image {1}, or may not see it",
		Fix:     "correct its name in \"args\"; if it is a private one, sign in with docker login",
	},
	{
		// The registry knows the image, but not this tag or digest of it.
		Name: "docker-unknown-tag", Sign: "manifest ",
		Pattern: `manifest (?:for )?(\S+)(?: not found)?: manifest unknown`,
		Reason:  "docker finds no version {1} of the image",
		Fix:     "correct the tag in \"args\"",
	},
	{
		// The daemon says this after the image was found: only the words behind its name can be wrong.
		Name: "docker-missing-program", Sign: "executable file not found in $PATH",
		Pattern: `exec: "(.*?)": executable file not found in \$PATH`,
		Reason:  "the image has no program {1}",
		Fix:     "correct what follows the image's name in \"args\"",
	},
	{
		// An MCP server has a pipe as its standard input, so -t can never work.
		Name: "docker-no-terminal", Sign: "the input device is not a TTY",
		Pattern: `the input device is not a TTY`,
		Reason:  "docker is asked for a terminal (-t), and there is none",
		Fix:     "write -i and not -it in \"args\"",
	},
	{
		// --mount demands that the folder exists; -v would make an empty one.
		Name: "docker-missing-folder", Sign: "bind source path does not exist",
		Pattern: `bind source path does not exist: (\S+)`,
		Reason:  "there is no folder {1} to mount into the container",
		Fix:     "make it, or correct the path in \"args\"",
	},
	{
		// Without --rm the container of the last run still exists under its name.
		Name: "docker-name-taken", Sign: "The container name ",
		Pattern: `The container name "(.*?)" is already in use`,
		Reason:  "there is a container of the name {1} already",
		Fix:     "leave --name out of \"args\", or add --rm and remove the old one (docker rm -f)",
	},
}
