// Command redsync puts the Go library redsync to work: it looks again every 50 to 250 ms. Speaks the protocol of
// ../README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
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
	url       string
	tasks     int
	seconds   time.Duration
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
	seconds := func(at syscall.Timeval) float64 { return float64(at.Sec) + float64(at.Usec)*1e-6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func micros(latencies []time.Duration) []float64 {
	sort.Slice(latencies, func(i, j int) bool { return latencies[i] < latencies[j] })
	var all []float64
	for _, share := range quantiles {
		if len(latencies) > 0 {
			all = append(all, float64(latencies[int(float64(len(latencies)-1)*share)].Nanoseconds())/1e3)
		}
	}
	return all
}

func connect() *redsync.Redsync {
	options, err := goredislib.ParseURL(url)
	must(err)
	return redsync.New(goredis.NewPool(goredislib.NewClient(options)))
}

// It gives up after 32 looks unless told otherwise; here everybody waits.
func lock(from *redsync.Redsync, name string) *redsync.Mutex {
	return from.NewMutex(name, redsync.WithExpiry(30*time.Second), redsync.WithTries(1<<30))
}

func warm(from *redsync.Redsync) {
	own := lock(from, fmt.Sprintf("bench:warm:%d", os.Getpid()))
	for range 50 {
		must(own.Lock())
		_, err := own.Unlock()
		must(err)
	}
}

func pairs() {
	from := connect()
	warm(from)
	ready()
	var done, errors atomic.Int64
	var over, measuring atomic.Bool
	var group sync.WaitGroup
	all := make([][]time.Duration, tasks)
	for number := range tasks {
		group.Add(1)
		go func() {
			defer group.Done()
			own := lock(from, fmt.Sprintf("bench:%d", number))
			for !over.Load() {
				began := time.Now()
				err := own.Lock()
				if err == nil {
					_, err = own.Unlock()
				}
				if err != nil {
					errors.Add(1)
					continue
				}
				done.Add(1)
				if measuring.Load() {
					all[number] = append(all[number], time.Since(began))
				}
			}
		}()
	}
	time.Sleep(300 * time.Millisecond)
	before, used, began := done.Load(), cpu(), time.Now()
	measuring.Store(true)
	time.Sleep(seconds)
	measuring.Store(false)
	result := said{Done: done.Load() - before, Seconds: time.Since(began).Seconds(), CPU: cpu() - used}
	over.Store(true)
	group.Wait()
	var latencies []time.Duration
	for _, some := range all {
		latencies = append(latencies, some...)
	}
	result.Micros, result.Errors = micros(latencies), errors.Load()
	say(result)
}

func counter(pause time.Duration) {
	from := connect()
	number, err := os.OpenFile(os.Getenv("BENCH_COUNTER"), os.O_RDWR, 0)
	must(err)
	warm(from)
	ready()
	waits := make([]time.Duration, tasks)
	var group sync.WaitGroup
	used, began := cpu(), time.Now()
	for task := range tasks {
		group.Add(1)
		go func() {
			defer group.Done()
			own, asked := lock(from, "bench:counter"), time.Now()
			must(own.Lock())
			waits[task] = time.Since(asked)
			digits := make([]byte, 20)
			_, err := number.ReadAt(digits, 0)
			must(err)
			before, err := strconv.ParseInt(string(digits), 10, 64)
			must(err)
			time.Sleep(pause)
			_, err = number.WriteAt(fmt.Appendf(nil, "%020d", before+1), 0)
			must(err)
			_, err = own.Unlock()
			must(err)
		}()
	}
	group.Wait()
	say(said{Done: int64(tasks), Seconds: time.Since(began).Seconds(), CPU: cpu() - used, Micros: micros(waits)})
}

func turns() {
	from := connect()
	warm(from)
	own := lock(from, "bench:turns")
	ready()
	for word := hear(); word != ""; word = hear() {
		var at int64
		if word == "acquire" {
			must(own.Lock())
			at = time.Now().UnixNano()
		} else {
			at = time.Now().UnixNano()
			_, err := own.Unlock()
			must(err)
		}
		say(at)
	}
}

func waiters() {
	holder, from := connect(), connect()
	warm(from)
	must(holder.NewMutex("bench:waiters", redsync.WithExpiry(2*time.Minute)).Lock())
	var got atomic.Int64
	for range tasks {
		go func() {
			if lock(from, "bench:waiters").LockContext(context.Background()) == nil {
				got.Add(1)
			}
		}()
	}
	time.Sleep(time.Second)
	ready()
	used, began := cpu(), time.Now()
	time.Sleep(seconds)
	say(said{Done: got.Load(), Seconds: time.Since(began).Seconds(), CPU: cpu() - used})
}

func version() {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/go-redsync/redsync/v4" {
			say(strings.TrimPrefix(module.Version, "v"))
		}
	}
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "start it with URL SCENARIO TASKS SECONDS")
		os.Exit(64)
	}
	url = os.Args[1]
	count, err := strconv.Atoi(os.Args[3])
	must(err)
	length, err := strconv.ParseFloat(os.Args[4], 64)
	must(err)
	tasks, seconds = count, time.Duration(length*float64(time.Second))
	switch os.Args[2] {
	case "version":
		version()
	case "pairs":
		pairs()
	case "counter":
		counter(0)
	case "hold":
		counter(time.Millisecond)
	case "turns":
		turns()
	case "waiters":
		waiters()
	default:
		must(fmt.Errorf("no scenario is called %q", os.Args[2]))
	}
}
