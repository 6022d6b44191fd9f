// Reads requests with Go's own reader, each line of the standard input a connection of its own: `request HEX`.
// Tells on a line of the standard output what it understood: `METHOD:TARGET:HOST:BODY ...`, and `error` where it
// stops.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
)

var port = regexp.MustCompile(`:\d*$`)

func read(stream []byte) (understood []string) {
	reader := bufio.NewReader(bytes.NewReader(stream))
	for {
		request, err := http.ReadRequest(reader)
		if err == io.EOF {
			return understood
		}
		var body []byte
		if err == nil {
			body, err = io.ReadAll(request.Body)
		}
		if err != nil {
			return append(understood, "error")
		}
		host := port.ReplaceAllString(request.Host, "")
		hexed := func(text string) string { return hex.EncodeToString([]byte(text)) }
		parts := []string{request.Method, hexed(request.RequestURI), hexed(host), hex.EncodeToString(body)}
		understood = append(understood, strings.Join(parts, ":"))
	}
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		_, digits, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		stream, err := hex.DecodeString(digits)
		if err != nil {
			panic(err)
		}
		fmt.Println(strings.Join(read(stream), " "))
	}
}
