// Command protogen compiles protobuf files to Go, with nothing but Go: no protoc, no buf.
//
//	protogen DIR FILE…
//
// Each FILE is named relative to DIR, which is also where its imports and its output (FILE.pb.go, beside the source) are
// looked for. The well-known types are built in.
//
// It stands on protocompile, the compiler of buf, and on the code generator of protoc-gen-go itself: the two versions in
// this module's go.mod decide every byte of the output, so that "generated code differs" means that somebody forgot to
// run `make generate` and never that two machines have two compilers.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: protogen DIR FILE…")
		os.Exit(2)
	}
	if err := generate(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, dir string, files []string) error {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		// Comments of the source become the docstrings of the Go code.
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return err
	}
	parameter := "paths=source_relative"
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: &parameter}
	seen := map[string]bool{}
	for _, f := range compiled {
		request.ProtoFile = withImports(request.ProtoFile, f, seen)
	}
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return err
	}
	plugin.SupportedFeatures = internal_gengo.SupportedFeatures
	plugin.SupportedEditionsMinimum = internal_gengo.SupportedEditionsMinimum
	plugin.SupportedEditionsMaximum = internal_gengo.SupportedEditionsMaximum
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	response := plugin.Response()
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, out := range response.File {
		if err := os.WriteFile(filepath.Join(dir, out.GetName()), []byte(out.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// withImports appends f after everything it imports, each file once: the order that a code generator is promised.
func withImports(
	list []*descriptorpb.FileDescriptorProto, f protoreflect.FileDescriptor, seen map[string]bool,
) []*descriptorpb.FileDescriptorProto {
	if seen[f.Path()] {
		return list
	}
	seen[f.Path()] = true
	imports := f.Imports()
	for i := range imports.Len() {
		list = withImports(list, imports.Get(i).FileDescriptor, seen)
	}
	return append(list, protoutil.ProtoFromFileDescriptor(f))
}
