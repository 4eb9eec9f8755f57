// gomemcache: see adapter.py.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

const (
	lineMax = 4 << 20
	seconds = 100
)

var token *memcache.Item

func written(err error) string {
	switch err {
	case nil:
		return "true"
	case memcache.ErrNotStored, memcache.ErrCacheMiss, memcache.ErrCASConflict:
		return "false"
	}
	return failed(err)
}

func failed(err error) string {
	return "error\t" + strings.Join(strings.Fields(err.Error()), " ")
}

func read(value string, err error) string {
	if err == memcache.ErrCacheMiss {
		return "none"
	}
	if err != nil {
		return failed(err)
	}
	return "value\t" + value
}

func get(client *memcache.Client, key string) string {
	item, err := client.Get(key)
	if err != nil {
		return read("", err)
	}
	token = item
	return read(string(item.Value), nil)
}

func many(client *memcache.Client, keys []string) string {
	items, err := client.GetMulti(keys)
	if err != nil {
		return failed(err)
	}
	words := []string{"many"}
	for key, item := range items {
		words = append(words, key, string(item.Value))
	}
	return strings.Join(words, "\t")
}

func number(change func(string, uint64) (uint64, error), key, delta string) string {
	amount, _ := strconv.ParseUint(delta, 10, 64)
	value, err := change(key, amount)
	return read(fmt.Sprint(value), err)
}

func cas(client *memcache.Client, value string) string {
	token.Value = []byte(value)
	return written(client.CompareAndSwap(token))
}

func answer(client *memcache.Client, verb string, words []string) string {
	switch verb {
	case "set":
		return written(client.Set(&memcache.Item{Key: words[0], Value: []byte(words[1])}))
	case "add":
		return written(client.Add(&memcache.Item{Key: words[0], Value: []byte(words[1])}))
	case "replace":
		return written(client.Replace(&memcache.Item{Key: words[0], Value: []byte(words[1])}))
	case "cas":
		return cas(client, words[1])
	case "get", "gets":
		return get(client, words[0])
	case "many":
		return many(client, words)
	case "incr":
		return number(client.Increment, words[0], words[1])
	case "decr":
		return number(client.Decrement, words[0], words[1])
	case "delete":
		return written(client.Delete(words[0]))
	case "touch":
		return written(client.Touch(words[0], seconds))
	case "flush":
		return written(client.FlushAll())
	}
	return "unsupported"
}

func main() {
	client := memcache.New(os.Args[1] + ":" + os.Args[2])
	client.Timeout = 10e9
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		fmt.Println(answer(client, words[0], words[1:]))
	}
}
