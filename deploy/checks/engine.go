// Renders the chart as Helm does: Go's own templates, sprig's functions and the YAML library that Helm uses. It is what
// chart.py is compared with; deploy/checks/engine builds it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

type values = map[string]interface{}

// files is the folder of a chart, from which templates get the text of a file. One that is not there has none.
type files string

// Get returns the text of a file.
func (folder files) Get(path string) string {
	text, _ := os.ReadFile(filepath.Join(string(folder), path))
	return string(text)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) values {
	text, err := os.ReadFile(path)
	must(err)
	result := values{}
	must(yaml.Unmarshal(text, &result))
	return result
}

// merge puts the members of over in the places of base's, mapping by mapping, as -f does.
func merge(base, over values) values {
	for name, value := range over {
		inner, isMap := value.(values)
		before, wasMap := base[name].(values)
		if isMap && wasMap {
			value = merge(before, inner)
		}
		base[name] = value
	}
	return base
}

// coalesce adds what defaults have and values have not. A null takes a default out.
func coalesce(given, defaults values) values {
	for name, value := range defaults {
		present, isGiven := given[name]
		inner, isMap := present.(values)
		below, wasMap := value.(values)
		switch {
		case isGiven && present == nil:
			delete(given, name)
		case isMap && wasMap:
			coalesce(inner, below)
		case !isGiven:
			given[name] = value
		}
	}
	return given
}

// functions are those that Helm adds to sprig's, as far as the chart uses them.
func functions(all *template.Template) template.FuncMap {
	result := sprig.TxtFuncMap()
	result["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		must(err)
		return strings.TrimSuffix(string(text), "\n")
	}
	result["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	return result
}

// engine CHART VALUES...: prints the manifests of a release named orders.
func main() {
	chart := os.Args[1]
	given := values{}
	for _, path := range os.Args[2:] {
		given = merge(given, read(path))
	}
	scope := values{
		"Values":  coalesce(given, read(filepath.Join(chart, "values.yaml"))),
		"Release": values{"Name": "orders"},
		"Files":   files(chart),
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	must(err)
	for _, file := range paths {
		text, err := os.ReadFile(file)
		must(err)
		template.Must(all.New(filepath.Base(file)).Parse(string(text)))
	}
	for _, file := range paths {
		if name := filepath.Base(file); !strings.HasPrefix(name, "_") {
			var out strings.Builder
			must(all.ExecuteTemplate(&out, name, scope))
			fmt.Printf("---\n%s\n", strings.ReplaceAll(out.String(), "<no value>", ""))
		}
	}
}
