// Generates the SDKs of a Pulumi package as Pulumi's own language hosts do. It reads the package's schema from stdin, refuses whatever
// Pulumi finds wrong in it, warnings too, and writes the folders python, nodejs and go below the folder that is its argument.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

const tool = "berth's tests"

// The schemas of other packages, of which berth's names none.
type noOther struct{ schema.ReferenceLoader }

func main() {
	log.SetFlags(0)
	var spec schema.PackageSpec
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		log.Fatal(err)
	}
	generators := map[string]func(*schema.Package) (map[string][]byte, error){
		"python": func(pkg *schema.Package) (map[string][]byte, error) {
			return python.GeneratePackage(tool, pkg, nil, noOther{})
		},
		"nodejs": func(pkg *schema.Package) (map[string][]byte, error) {
			return nodejs.GeneratePackage(tool, pkg, nil, nil, true, noOther{})
		},
		"go": func(pkg *schema.Package) (map[string][]byte, error) {
			return gen.GeneratePackage(tool, pkg, nil)
		},
	}
	for language, generate := range generators {
		pkg, found, err := schema.BindSpec(spec, noOther{}, schema.ValidationOptions{})
		if err != nil {
			log.Fatal(err)
		}
		for _, problem := range found {
			log.Print(problem)
		}
		if len(found) > 0 {
			os.Exit(1)
		}
		files, err := generate(pkg)
		if err != nil {
			log.Fatal(language, ": ", err)
		}
		for name, content := range files {
			path := filepath.Join(os.Args[1], language, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				log.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				log.Fatal(err)
			}
		}
	}
}
