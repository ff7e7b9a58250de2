package client_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// fill sets every field to something that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(at.Add(time.Duration(*n) * time.Second)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Tag.Get("json") != "-" {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"n":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), element)
	case reflect.String:
		v.SetString("text" + string(rune('a'+*n%26)))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	default:
		panic(v.Kind())
	}
}

var camelCase = regexp.MustCompile(`^[a-z][a-zA-Z]*$`)

// fields walks through the JSON names of a type of ours.
func fields(t *testing.T, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
		return
	}
	for i := range typ.NumField() {
		if !typ.Field(i).IsExported() || typ.Field(i).Tag.Get("json") == "-" {
			continue
		}
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name == "" && typ.Field(i).Anonymous { // its fields are those of what it is in
			fields(t, typ.Field(i).Type)
			continue
		}
		require.Regexp(t, camelCase, name, "%s.%s", typ, typ.Field(i).Name)
		fields(t, typ.Field(i).Type)
	}
}

// bodies are those of requests and answers, with what else is read back by itself.
var bodies = []any{
	&client.StartRequest{}, &client.Started{}, &client.SubmitRequest{}, &client.Submitted{}, &client.AnswersRequest{}, &client.SubmittedAll{}, &client.ResumeRequest{}, &client.Resumed{}, &client.SendRequest{}, &client.Sent{}, &client.StopRequest{}, &client.Stopped{}, &client.Deleted{}, &client.DismissRequest{}, &client.ExtendRequest{}, &client.DelegateRequest{}, &client.Acted{}, &client.WaitView{},
	&client.RetryRequest{}, &client.ForkRequest{}, &client.Forked{}, &client.CheckpointView{},
	&client.LinkRequest{}, &client.Link{}, &client.Permissions{}, &client.RevokeRequest{}, &client.Revoked{}, &session.PermissionPreview{}, &session.Standing{},
	&client.HaltRequest{}, &client.Halted{}, &client.GoRequest{}, &client.Lifted{}, &client.Halts{}, &client.AwayRequest{}, &client.AwayChanged{}, &client.Away{}, &client.Notices{},
	&client.Session{}, &client.Wait{}, &client.Sessions{}, &client.Runs{}, &client.Audit{}, &client.Checkpoints{}, &client.Waits{}, &client.Messages{}, &client.Entries{}, &client.Problem{},
}

// reach adds the names of the structs of this package that a type has in it.
func reach(typ reflect.Type, names map[string]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		reach(typ.Elem(), names)
	case reflect.Struct:
		if !strings.HasSuffix(typ.PkgPath(), "/client") || names[typ.Name()] {
			return
		}
		names[typ.Name()] = true
		for i := range typ.NumField() {
			reach(typ.Field(i).Type, names)
		}
	default:
	}
}

// tagged reports whether a type is a struct with a field that has a name in JSON.
func tagged(of ast.Expr) bool {
	s, ok := of.(*ast.StructType)
	return ok && slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		return f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`)
	})
}

// TestBodies: every struct of this package that is JSON is one of the bodies, or in one.
func TestBodies(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	for _, v := range bodies {
		reach(reflect.TypeOf(v), reached)
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			require.True(t, !tagged(spec.Type) || reached[spec.Name.Name], "%s: no body has %s in it: list it in bodies", name, spec.Name.Name)
			return true
		})
	}
}

// TestRound: everything the API says is read back as it was, and its names are camelCase.
func TestRound(t *testing.T) {
	t.Parallel()
	for _, v := range bodies {
		t.Run(reflect.TypeOf(v).Elem().Name(), func(t *testing.T) {
			t.Parallel()
			n := 0
			fill(reflect.ValueOf(v).Elem(), &n)
			raw, err := json.Marshal(v)
			require.NoError(t, err)
			again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			require.NoError(t, json.Unmarshal(raw, again))
			require.Equal(t, v, again)
			fields(t, reflect.TypeOf(v))
		})
	}
}
