package failure

// otherLanguages are the failures of programs in Go, Java, Ruby, Rust, Perl and .NET, and of the tools that start them.
var otherLanguages = []knownFailure{
	{
		// go run with a path: these are the words of the go command and not of the program.
		name: "go-missing-folder", sign: "directory not found",
		pattern: `^stat (.*): directory not found`,
		reason:  "go finds no folder {1}",
		fix:     "correct the path in \"args\", or \"cwd\"",
	},
	{
		// go run of a package needs a module, unless the argument names a version.
		name: "go-no-module", sign: "go.mod file not found",
		pattern: `go\.mod file not found in current directory or any parent directory`,
		reason:  "go run was started outside of a Go module",
		fix:     "set \"cwd\" to the server's folder, or name a version: go run MODULE@latest",
	},
	{
		// The go command prints the import path that no module provides.
		name: "go-missing-dependency", sign: "no required module provides package ",
		pattern: `no required module provides package (\S+?);`,
		reason:  "the Go module does not name what provides {1}",
		fix:     "run go mod tidy in the server's folder",
	},
	{
		// Programs that use Go's package flag print this line, and then their usage.
		name: "go-unknown-flag", sign: "flag provided but not defined: ",
		pattern: `flag provided but not defined: (\S+)`,
		reason:  "the program does not know the flag {1}",
		fix:     "correct \"args\": -help of the program shows what it takes",
	},
	{
		// A panic of the runtime, such as a nil pointer, is always a defect of the program.
		name: "go-defect", sign: "panic: runtime error: ",
		pattern: `^panic: runtime error: (.*)`,
		reason:  "the program has a defect (<1>)",
		fix:     "try another version, and report the stack in its standard error to its author",
	},
	{
		// java takes the first word behind -jar for the file.
		name: "java-missing-jar", sign: "Unable to access jarfile ",
		pattern: `Unable to access jarfile (.*)`,
		reason:  "java finds no file {1}",
		fix:     "correct the path in \"args\", or \"cwd\"; if it is a result of a build, build it",
	},
	{
		// A download that was cut short, or an error page in the place of the archive.
		name: "java-bad-jar", sign: "Invalid or corrupt jarfile ",
		pattern: `Invalid or corrupt jarfile (.*)`,
		reason:  "{1} is no archive that java can read",
		fix:     "download or build it again",
	},
	{
		// The name may come from "args" or from the archive's manifest.
		name: "java-missing-main", sign: "Could not find or load main class ",
		pattern: `Could not find or load main class (.*)`,
		reason:  "java does not find the class {1}",
		fix:     "correct its name, or the class path (-cp) in \"args\"",
	},
	{
		// Class files have a version; the numbers of common ones stand in the advice.
		name: "java-too-old", sign: "has been compiled by a more recent version",
		pattern: `class file version (\d+)\.\d+\), this version of the Java Runtime only recognizes class file versions up to (\d+)`,
		reason:  "the server was made for a newer Java (class file version <1>, this one reads up to <2>)",
		fix:     "install that Java (52 is Java 8, 61 is 17, 65 is 21), and let \"command\" name it",
	},
	{
		// The exception that ends the program, not one that it caught and printed: the pattern demands its beginning.
		name: "java-missing-class", sign: "ClassNotFoundException: ",
		pattern: `^(?:Caused by|Exception in thread "[^"]*"):? ?java\.lang\.ClassNotFoundException: (\S+)`,
		reason:  "java does not find the class {1} of a library",
		fix:     "take the archive that holds its libraries, or add them to the class path (-cp)",
	},
	{
		// The text says which memory: the heap, the metaspace, or threads.
		name: "java-out-of-memory", sign: "java.lang.OutOfMemoryError",
		pattern: `java\.lang\.OutOfMemoryError: (.*)`,
		reason:  "java has run out of the memory that it may use (<1>)",
		fix:     "allow more with -Xmx in \"args\", before -jar",
	},
	{
		// Ruby prints the stack after this line.
		name: "ruby-missing-gem", sign: "cannot load such file -- ",
		pattern: `cannot load such file -- (\S+) \(LoadError\)`,
		reason:  "Ruby does not find {1}",
		fix:     "install the gem that has it (gem install, bundle install) for the Ruby that \"command\" names",
	},
	{
		// Only the interpreter's own line begins with ruby: the program's errors have another form.
		name: "ruby-missing-file", sign: "No such file or directory -- ",
		pattern: `^ruby: No such file or directory -- (\S+) \(LoadError\)`,
		reason:  "Ruby finds no file {1}",
		fix:     "correct the path in \"args\", or \"cwd\"",
	},
	// Ruby names only the key; the pattern asks for the form of an environment variable, because any hash may lack a key.
	{
		name: "ruby-missing-variable", sign: "key not found: ",
		pattern: `key not found: "([A-Z][A-Z0-9]*_[A-Z0-9_]+)" \(KeyError\)`,
		reason:  "the program looks for {1} and does not find it",
		fix:     "if that is an environment variable, as its name says, set it: \"env\": {\"<1>\": \"${<1>}\"}",
	},
	{
		// Perl's own proposal in parentheses has the module's name.
		name: "perl-missing-module", sign: "you may need to install the ",
		pattern: `you may need to install the ([\w:]+) module`,
		reason:  "Perl does not find the module {1}",
		fix:     "install it (cpan <1>)",
	},
	{
		// cargo run looks in the working directory and above it.
		name: "cargo-no-project", sign: "could not find `Cargo.toml`",
		pattern: "could not find `Cargo\\.toml` in `(.*?)`",
		reason:  "cargo finds no Cargo.toml in {1}",
		fix:     "set \"cwd\" to the server's folder",
	},
	{
		// The version and the framework stand in the lines below this one.
		name: "dotnet-missing-framework", sign: "You must install or update .NET",
		pattern: `You must install or update \.NET to run this application`,
		reason:  "the version of .NET that the server asks for is not installed",
		fix:     "install it: the lines below it in standard error name it",
	},
}
