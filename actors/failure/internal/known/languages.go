package known

// otherLanguages are the failures of programs in Go, Java, Ruby, Rust, Perl and .NET, and of the tools that start them.
var otherLanguages = []Failure{
	{
		// go run with a path: these are the words of the go command and not of the program.
		Name: "go-missing-folder", Sign: "directory not found",
		Pattern: `^stat (.*): directory not found`,
		Reason:  "go finds no folder {1}",
		Fix:     "correct the path in \"args\", or \"cwd\"",
	},
	{
		// go run of a package needs a module, unless the argument names a version.
		Name: "go-no-module", Sign: "go.mod file not found",
		Pattern: `go\.mod file not found in current directory or any parent directory`,
		Reason:  "go run was started outside of a Go module",
		Fix:     "set \"cwd\" to the server's folder, or name a version: go run MODULE@latest",
	},
	{
		// The go command prints the import path that no module provides.
		Name: "go-missing-dependency", Sign: "no required module provides package ",
		Pattern: `no required module provides package (\S+?);`,
		Reason:  "the Go module does not name what provides {1}",
		Fix:     "run go mod tidy in the server's folder",
	},
	{
		// Programs that use Go's package flag print this line, and then their usage.
		Name: "go-unknown-flag", Sign: "flag provided but not defined: ",
		Pattern: `flag provided but not defined: (\S+)`,
		Reason:  "the program does not know the flag {1}",
		Fix:     "correct \"args\": -help of the program shows what it takes",
	},
	{
		// A panic of the runtime, such as a nil pointer, is always a defect of the program.
		Name: "go-defect", Sign: "panic: runtime error: ",
		Pattern: `^panic: runtime error: (.*)`,
		Reason:  "the program has a defect (<1>)",
		Fix:     "try another version, and report the stack in its standard error to its author",
	},
	{
		// java takes the first word behind -jar for the file.
		Name: "java-missing-jar", Sign: "Unable to access jarfile ",
		Pattern: `Unable to access jarfile (.*)`,
		Reason:  "java finds no file {1}",
		Fix:     "correct the path in \"args\", or \"cwd\"; if it is a result of a build, build it",
	},
	{
		// A download that was cut short, or an error page in the place of the archive.
		Name: "java-bad-jar", Sign: "Invalid or corrupt jarfile ",
		Pattern: `Invalid or corrupt jarfile (.*)`,
		Reason:  "{1} is no archive that java can read",
		Fix:     "download or build it again",
	},
	{
		// The name may come from "args" or from the archive's manifest.
		Name: "java-missing-main", Sign: "Could not find or load main class ",
		Pattern: `Could not find or load main class (.*)`,
		Reason:  "java does not find the class {1}",
		Fix:     "correct its name, or the class path (-cp) in \"args\"",
	},
	{
		// Class files have a version; the numbers of common ones stand in the advice.
		Name: "java-too-old", Sign: "has been compiled by a more recent version",
		Pattern: `class file version (\d+)\.\d+\), this version of the Java Runtime only recognizes class file versions up to (\d+)`,
		Reason:  "the server was made for a newer Java (class file version <1>, this one reads up to <2>)",
		Fix:     "install that Java (52 is Java 8, 61 is 17, 65 is 21), and let \"command\" name it",
	},
	{
		// The exception that ends the program, not one that it caught and printed: the pattern demands its beginning.
		Name: "java-missing-class", Sign: "ClassNotFoundException: ",
		Pattern: `^(?:Caused by|Exception in thread "[^"]*"):? ?java\.lang\.ClassNotFoundException: (\S+)`,
		Reason:  "java does not find the class {1} of a library",
		Fix:     "take the archive that holds its libraries, or add them to the class path (-cp)",
	},
	{
		// The text says which memory: the heap, the metaspace, or threads.
		Name: "java-out-of-memory", Sign: "java.lang.OutOfMemoryError",
		Pattern: `java\.lang\.OutOfMemoryError: (.*)`,
		Reason:  "java has run out of the memory that it may use (<1>)",
		Fix:     "allow more with -Xmx in \"args\", before -jar",
	},
	{
		// Ruby prints the stack after this line.
		Name: "ruby-missing-gem", Sign: "cannot load such file -- ",
		Pattern: `cannot load such file -- (\S+) \(LoadError\)`,
		Reason:  "Ruby does not find {1}",
		Fix:     "install the gem that has it (gem install, bundle install) for the Ruby that \"command\" names",
	},
	{
		// Only the interpreter's own line begins with ruby: the program's errors have another form.
		Name: "ruby-missing-file", Sign: "No such file or directory -- ",
		Pattern: `^ruby: No such file or directory -- (\S+) \(LoadError\)`,
		Reason:  "Ruby finds no file {1}",
		Fix:     "correct the path in \"args\", or \"cwd\"",
	},
	// Ruby names only the key; the pattern asks for the form of an environment variable, because any hash may lack a key.
	{
		Name: "ruby-missing-variable", Sign: "key not found: ",
		Pattern: `key not found: "([A-Z][A-Z0-9]*_[A-Z0-9_]+)" \(KeyError\)`,
		Reason:  "the program looks for {1} and does not find it",
		Fix:     "if that is an environment variable, as its name says, set it: \"env\": {\"<1>\": \"${<1>}\"}",
	},
	{
		// Perl's own proposal in parentheses has the module's name.
		Name: "perl-missing-module", Sign: "you may need to install the ",
		Pattern: `you may need to install the ([\w:]+) module`,
		Reason:  "Perl does not find the module {1}",
		Fix:     "install it (cpan <1>)",
	},
	{
		// cargo run looks in the working directory and above it.
		Name: "cargo-no-project", Sign: "could not find `Cargo.toml`",
		Pattern: "could not find `Cargo\\.toml` in `(.*?)`",
		Reason:  "cargo finds no Cargo.toml in {1}",
		Fix:     "set \"cwd\" to the server's folder",
	},
	{
		// The version and the framework stand in the lines below this one.
		Name: "dotnet-missing-framework", Sign: "You must install or update .NET",
		Pattern: `You must install or update \.NET to run this application`,
		Reason:  "the version of .NET that the server asks for is not installed",
		Fix:     "install it: the lines below it in standard error name it",
	},
}
