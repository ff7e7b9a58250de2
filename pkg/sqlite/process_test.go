//go:build linux

package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// children are what the test binary does when it is started again as a process
// of its own. Each speaks on stdout and returns when its stdin ends.
var children = map[string]func(path string) error{
	"commit": commitForEver,
	"hold":   holdALease,
	"full":   fillTheDisk,
	"denied": useReadOnly,
	"freeze": stopInCommit,
	"reader": readAsNobody,
	"power":  loseEverything,
	"append": appendMore,
}

func TestMain(m *testing.M) {
	if name := os.Getenv("SQLITE_TEST_CHILD"); name != "" {
		if err := children[name](os.Getenv("SQLITE_TEST_PATH")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a process of its own.
type child struct {
	*exec.Cmd
	out   *bufio.Reader
	stdin io.WriteCloser
}

func start(t *testing.T, name, path string, attrs *syscall.SysProcAttr) *child {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), "SQLITE_TEST_CHILD="+name, "SQLITE_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = attrs
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &child{Cmd: cmd, out: bufio.NewReader(out), stdin: stdin}
}

// line returns what the child says next.
func (c *child) line(t *testing.T) string {
	t.Helper()
	text, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(text)
}

func (c *child) signal(t *testing.T, s os.Signal) {
	t.Helper()
	require.NoError(t, c.Process.Signal(s))
}

// commitForEver commits entries, each with a ledger item and a wake, and says
// the seq of each one that was acknowledged.
func commitForEver(path string) error {
	ctx := context.Background()
	db, err := Open(ctx, Config{Path: path})
	if err != nil {
		return err
	}
	last := int64(0)
	for e, err := range db.Store().Entries(ctx, crashKey, 0) {
		if err != nil {
			return err
		}
		last = e.Seq
	}
	fmt.Println("from", last)
	for seq := last + 1; ; seq++ {
		call := fmt.Sprintf("c%d-0", seq)
		_, err := db.Store().Commit(ctx, store.CommitParams{
			Key: crashKey, Entry: plainEntry(seq),
			Items: []store.Item{store.ToolItem(journal.ToolRecord{Call: call, State: journal.ToolStarted}, 0)},
			Wakes: []journal.Wake{journal.NewWake(crashKey, seq+1, journal.WakeStep)},
		})
		if err != nil {
			return err
		}
		fmt.Println(seq)
	}
}

// TestKilled kills a writer at any moment, again and again: what was
// acknowledged is there, whole, and what was not is there whole or not at all.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := file(t)
	trials := 12
	if testing.Short() {
		trials = 3
	}
	acknowledged := int64(0)
	for trial := range trials {
		c := start(t, "commit", path, nil)
		from, err := strconv.ParseInt(strings.TrimPrefix(c.line(t), "from "), 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, from, acknowledged, "what was acknowledged is there")
		require.LessOrEqual(t, from, acknowledged+1, "at most one more is there: the one under way")
		acknowledged = from
		for range 1 + trial*7%23 {
			acknowledged, err = strconv.ParseInt(c.line(t), 10, 64)
			require.NoError(t, err)
		}
		c.signal(t, syscall.SIGKILL)
		// What it said before it died counts too.
		for {
			text, err := c.out.ReadString('\n')
			if err != nil {
				break
			}
			acknowledged, err = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			require.NoError(t, err)
		}
		_ = c.Wait()
	}
	db := open(t, path)
	var entries, items, messages int64
	for e, err := range db.Store().Entries(t.Context(), crashKey, 0) {
		require.NoError(t, err)
		entries = e.Seq
	}
	for _, err := range db.Store().Items(t.Context(), crashKey, store.KindTool, "") {
		require.NoError(t, err)
		items++
	}
	for {
		got, err := db.Queue().Receive(t.Context(), queue.ReceiveParams{Max: 64, Visibility: time.Hour})
		require.NoError(t, err)
		if len(got) == 0 {
			break
		}
		messages += int64(len(got))
	}
	require.Contains(t, []int64{acknowledged, acknowledged + 1}, entries)
	require.Equal(t, entries, items, "an entry and its items are there together")
	require.Equal(t, entries, messages, "an entry and its wakes are there together")
}

// holdALease takes the lease of entry 2 and a message, for an hour, and waits.
func holdALease(path string) error {
	ctx := context.Background()
	db, err := Open(ctx, Config{Path: path})
	if err != nil {
		return err
	}
	now := time.Now()
	if _, err := db.Store().Claim(ctx, store.ClaimParams{
		Key: crashKey, Mode: store.ClaimTake, Owner: db.Owner() + "/invocation", Seq: 2, Now: now, Until: now.Add(time.Hour),
	}); err != nil {
		return err
	}
	got, err := db.Queue().Receive(ctx, queue.ReceiveParams{Visibility: time.Hour, Wait: time.Minute})
	if err != nil || len(got) != 1 {
		return fmt.Errorf("received %v: %w", got, err)
	}
	fmt.Println("holding")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func TestWhatADeadOwnerHeld(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, path)
	_, err := db.Store().Commit(t.Context(), store.CommitParams{
		Key: crashKey, Entry: plainEntry(1), Items: []store.Item{store.HeadItem(plainHead(crashKey), 0)},
		Wakes: []journal.Wake{journal.NewWake(crashKey, 2, journal.WakeStep)},
	})
	require.NoError(t, err)
	c := start(t, "hold", path, nil)
	require.Equal(t, "holding", c.line(t))
	claim := func() (store.Item, error) {
		return db.Store().Claim(t.Context(), store.ClaimParams{
			Key: crashKey, Mode: store.ClaimTake, Owner: db.Owner(), Seq: 2, Now: time.Now(), Until: time.Now().Add(time.Minute),
		})
	}
	receive := func() []queue.Delivery {
		got, err := db.Queue().Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute})
		require.NoError(t, err)
		return got
	}
	held := func(state string) {
		_, err := claim()
		require.ErrorIs(t, err, store.ErrLeaseHeld, state)
		require.False(t, readHead(t, db).Lease.Until.IsZero(), state)
		require.Empty(t, receive(), state)
	}
	held("alive")
	c.signal(t, syscall.SIGSTOP)
	held("stopped: it may go on")
	c.signal(t, syscall.SIGCONT)
	// It is killed and nobody has waited for it: a zombie is dead.
	c.signal(t, syscall.SIGKILL)
	require.Eventually(t, func() bool { return readHead(t, db).Lease.Until.IsZero() }, soon, time.Millisecond)
	got := receive()
	require.Len(t, got, 1, "visible at once")
	require.Equal(t, 2, got[0].Receives)
	item, err := claim()
	require.NoError(t, err)
	require.EqualValues(t, 2, item.Head.Lease.N)
	_ = c.Wait()
}

func readHead(t *testing.T, db *DB) *journal.Head {
	t.Helper()
	for item, err := range db.Store().Items(t.Context(), crashKey, store.KindHead, "") {
		require.NoError(t, err)
		return item.Head
	}
	require.Fail(t, "no HEAD")
	return nil
}

// A receive that waits is given what a process held that dies meanwhile.
func TestWaitingForADeadOwnersMessage(t *testing.T) {
	t.Parallel()
	waitForADeadOwnersMessage(t, false)
}

// The same where the system tells what others write: a process that dies writes nothing.
func TestWaitingForADeadOwnersMessage_while_the_system_tells(t *testing.T) {
	t.Parallel()
	waitForADeadOwnersMessage(t, true)
}

func waitForADeadOwnersMessage(t *testing.T, listen bool) {
	t.Helper()
	path := file(t)
	db := openConfig(t, Config{Path: path, Listen: listen})
	stay(t, db)
	_, err := db.Store().Commit(t.Context(), store.CommitParams{
		Key: crashKey, Entry: plainEntry(1), Items: []store.Item{store.HeadItem(plainHead(crashKey), 0)},
		Wakes: []journal.Wake{journal.NewWake(crashKey, 2, journal.WakeStep)},
	})
	require.NoError(t, err)
	c := start(t, "hold", path, nil)
	require.Equal(t, "holding", c.line(t))
	got := make(chan []queue.Delivery, 1)
	go func() {
		d, _ := db.Queue().Only(crashKey).Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute, Wait: time.Minute})
		got <- d
	}()
	c.signal(t, syscall.SIGKILL)
	require.Len(t, <-got, 1)
}

// fillTheDisk commits on a disk of its own until that is full, and says so.
func fillTheDisk(path string) error {
	ctx := context.Background()
	dir := filepath.Dir(path)
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		fmt.Println("cannot mount:", err)
		return nil
	}
	db, err := Open(ctx, Config{Path: path})
	if err != nil {
		return err
	}
	seq := int64(1)
	for ; err == nil; seq++ {
		e := plainEntry(seq)
		e.Output = []byte(`"` + randomText(20_000) + `"`)
		_, err = db.Store().Commit(ctx, store.CommitParams{
			Key: crashKey, Entry: e, Items: []store.Item{store.RunItem(session.Run{ID: seq}, 0)},
		})
	}
	fmt.Println(err)
	var entries, runs int64
	for e, err := range db.Store().Entries(ctx, crashKey, 0) {
		if err != nil {
			return err
		}
		entries = e.Seq
	}
	for _, err := range db.Store().Items(ctx, crashKey, store.KindRun, "") {
		if err != nil {
			return err
		}
		runs++
	}
	fmt.Println(seq-2, entries, runs)
	return db.Close()
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	c := start(t, "full", filepath.Join(t.TempDir(), "a.db"), &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	said := c.line(t)
	if strings.HasPrefix(said, "cannot mount") {
		t.Skip(said)
	}
	require.Contains(t, said, store.ErrUnavailable.Error())
	require.Contains(t, said, "the disk is full: free some space")
	require.Contains(t, said, "commit default/crash")
	var acknowledged, entries, runs int64
	_, err := fmt.Sscan(c.line(t), &acknowledged, &entries, &runs)
	require.NoError(t, err)
	require.Positive(t, acknowledged)
	require.Equal(t, acknowledged, entries, "what was acknowledged is there, and nothing of what was refused")
	require.Equal(t, entries, runs)
	require.NoError(t, c.Wait())
}
