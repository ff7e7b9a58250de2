package client_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
)

func TestContent(t *testing.T) {
	t.Parallel()
	image := llm.Part{Kind: llm.PartImage, File: &llm.FileRef{MediaType: "image/png", Data: []byte{0xff, 0}}}
	for name, c := range map[string]struct {
		json string
		want client.Content
		back string // what is written, where it is another form
	}{
		"a string":         {json: `"hi <b>"`, want: client.Text("hi <b>"), back: `"hi \u003cb\u003e"`},
		"an empty string":  {json: `""`, want: client.Text("")},
		"no parts":         {json: `[]`, want: client.Content{}},
		"one text part":    {json: `[{"kind":"text","text":"hi"}]`, want: client.Text("hi"), back: `"hi"`},
		"text and image":   {json: `[{"kind":"text","text":"hi"},{"kind":"image","file":{"mediaType":"image/png","data":"/wA="}}]`, want: append(client.Text("hi"), image)},
		"two texts":        {json: `[{"kind":"text","text":"a"},{"kind":"text","text":"b"}]`, want: append(client.Text("a"), llm.Text("b"))},
		"text with opaque": {json: `[{"kind":"text","text":"a","opaque":"AA=="}]`, want: client.Content{{Kind: llm.PartText, Text: "a", Opaque: []byte{0}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got client.Content
			require.NoError(t, json.Unmarshal([]byte(" "+c.json), &got))
			require.Equal(t, c.want, got)
			written, err := json.Marshal(got)
			require.NoError(t, err)
			if c.back == "" {
				c.back = c.json
			}
			require.Equal(t, c.back, string(written))
		})
	}
	for _, wrong := range []string{`1`, `{}`, `[1]`, `["a"]`, `true`, `[{"kind":"image","file":{"data":"no base64"}}]`} {
		var got client.Content
		require.Error(t, json.Unmarshal([]byte(wrong), &got), wrong)
	}
	var none client.ResumeRequest
	require.NoError(t, json.Unmarshal([]byte(`{"message":null}`), &none))
	require.Nil(t, none.Message)
	written, err := json.Marshal(client.ResumeRequest{Message: client.Content{}})
	require.NoError(t, err)
	require.JSONEq(t, `{"message":[]}`, string(written), "no parts is not no message")
}
