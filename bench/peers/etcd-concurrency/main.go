// Command etcd-concurrency puts the Mutex of etcd's own Go client to work: who waits watches the key before its own.
// Speaks the protocol of ../README.md, of which it knows version, counter and turns.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

type said struct {
	Done    int64     `json:"done"`
	Seconds float64   `json:"seconds"`
	CPU     float64   `json:"cpu"`
	Errors  int64     `json:"errors"`
	Micros  []float64 `json:"micros,omitempty"`
}

var (
	quantiles = []float64{0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999}
	input     = bufio.NewReader(os.Stdin)
	forever   = context.Background()
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func say(what any) {
	line, err := json.Marshal(what)
	must(err)
	fmt.Println(string(line))
}

func hear() string {
	line, err := input.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}

func ready() {
	fmt.Println("ready")
	hear()
}

func cpu() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// shared is the clock that all processes have in common.
func shared() int64 {
	var now unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return now.Nano()
}

func micros(latencies []time.Duration) []float64 {
	sort.Slice(latencies, func(a, b int) bool { return latencies[a] < latencies[b] })
	var all []float64
	for _, share := range quantiles {
		if len(latencies) > 0 {
			all = append(all, float64(latencies[int(float64(len(latencies)-1)*share)].Nanoseconds())/1e3)
		}
	}
	return all
}

func connect(url string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{strings.TrimPrefix(url, "etcd://")},
		DialTimeout: 5 * time.Second,
		Logger:      zap.NewNop(),
	})
	must(err)
	return client
}

// lock is one of a session of its own: two that share a session share its locks too.
func lock(client *clientv3.Client, name string) *concurrency.Mutex {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	must(err)
	return concurrency.NewMutex(session, "/peer/"+name)
}

func warm(client *clientv3.Client) {
	own := lock(client, fmt.Sprintf("bench:warm:%d", os.Getpid()))
	for range 50 {
		must(own.Lock(forever))
		must(own.Unlock(forever))
	}
}

func counter(client *clientv3.Client, tasks int) {
	number, err := os.OpenFile(os.Getenv("BENCH_COUNTER"), os.O_RDWR, 0)
	must(err)
	locks := make([]*concurrency.Mutex, tasks)
	for task := range tasks {
		locks[task] = lock(client, "bench:counter")
	}
	ready()
	waits := make([]time.Duration, tasks)
	var group sync.WaitGroup
	used, began := cpu(), time.Now()
	for task, own := range locks {
		group.Go(func() {
			asked := time.Now()
			must(own.Lock(forever))
			waits[task] = time.Since(asked)
			increment(number)
			must(own.Unlock(forever))
		})
	}
	group.Wait()
	say(said{Done: int64(tasks), Seconds: time.Since(began).Seconds(), CPU: cpu() - used, Micros: micros(waits)})
}

func increment(number *os.File) {
	digits := make([]byte, 20)
	_, err := number.ReadAt(digits, 0)
	must(err)
	before, err := strconv.ParseInt(string(digits), 10, 64)
	must(err)
	runtime.Gosched()
	_, err = number.WriteAt(fmt.Appendf(nil, "%020d", before+1), 0)
	must(err)
}

func turns(client *clientv3.Client) {
	own := lock(client, "bench:turns")
	ready()
	for word := hear(); word != ""; word = hear() {
		var at int64
		if word == "acquire" {
			must(own.Lock(forever))
			at = shared()
		} else {
			at = shared()
			must(own.Unlock(forever))
		}
		say(at)
	}
}

func version() {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "go.etcd.io/etcd/client/v3" {
			say(strings.TrimPrefix(module.Version, "v"))
		}
	}
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "start it with URL SCENARIO TASKS SECONDS")
		os.Exit(64)
	}
	tasks, err := strconv.Atoi(os.Args[3])
	must(err)
	if os.Args[2] == "version" {
		version()
		return
	}
	client := connect(os.Args[1])
	warm(client)
	switch os.Args[2] {
	case "counter":
		counter(client, tasks)
	case "turns":
		turns(client)
	default:
		must(fmt.Errorf("no scenario is called %q", os.Args[2]))
	}
}
