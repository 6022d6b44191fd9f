// A load generator of Go's net/http with its default transport, as many programs have it: each request has a
// connection of its own (Connection: close) and waits a second. It offers a steady rate, and prints what came
// of it as JSON.
//
// Words: URL, requests a second, seconds.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func number(word string) float64 {
	value, err := strconv.ParseFloat(word, 64)
	if err != nil || value <= 0 {
		fmt.Fprintf(os.Stderr, "client: %q is no number above 0\n", word)
		os.Exit(2)
	}
	return value
}

func isGood(client *http.Client, url string) bool {
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return false
	}
	request.Close = true
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "client: URL, requests a second, seconds")
		os.Exit(2)
	}
	url, rate, seconds := os.Args[1], number(os.Args[2]), number(os.Args[3])
	client := &http.Client{Timeout: time.Second}
	var good int64
	var under sync.WaitGroup
	offered := 0
	begun := time.Now()
	for time.Since(begun).Seconds() < seconds {
		due := begun.Add(time.Duration(float64(offered) / rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
			continue
		}
		offered++
		under.Add(1)
		go func() {
			defer under.Done()
			if isGood(client, url) {
				atomic.AddInt64(&good, 1)
			}
		}()
	}
	spent := time.Since(begun).Seconds()
	under.Wait()
	fmt.Printf("{\"offered\": %d, \"good\": %d, \"seconds\": %f}\n", offered, good, spent)
}
