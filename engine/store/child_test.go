package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// roles are what this test binary does when it is started as a child, by name in SKEP_STORE_CHILD.
var roles = map[string]func(dir string) error{
	"create": childCreate,
	"hold":   childHold,
	"write":  childWrite,
	"fill":   childFill,
}

func TestMain(m *testing.M) {
	role := roles[os.Getenv("SKEP_STORE_CHILD")]
	if role == nil {
		os.Exit(m.Run())
	}
	if err := role(os.Getenv("SKEP_STORE_DIR")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is this binary in a role, with what it prints.
type child struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func start(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return &child{cmd, stdin, bufio.NewScanner(stdout)}
}

func inRole(role, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SKEP_STORE_CHILD="+role, "SKEP_STORE_DIR="+dir)
	return cmd
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("the child ended early: %v", c.lines.Err())
	}
	return c.lines.Text()
}

// childCreate makes a run and writes one program.
func childCreate(dir string) error {
	s, err := Create(dir, testMeta())
	if err != nil {
		return err
	}
	fmt.Println("created")
	_, err = s.AddProgram(context.Background(), sampleProgram(), sampleEvaluation())
	io.Copy(io.Discard, os.Stdin)
	return err
}

// childHold opens a run, says so, and keeps it until its stdin closes.
func childHold(dir string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	fmt.Println("open")
	io.Copy(io.Discard, os.Stdin)
	return s.Close()
}

// childWrite adds programs from four goroutines and hidden states from a fifth until it is killed. It prints what was
// acknowledged: "program ID CODE" or "hidden ROUND".
func childWrite(dir string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for g := range 4 {
		go func() {
			for i := 0; ; i++ {
				code := fmt.Sprintf("%d-%d-%d-%s", os.Getpid(), g, i, strings.Repeat("x", 100*(i%50)))
				id, err := s.AddProgram(context.Background(), Program{Kind: "fresh", Code: code}, Evaluation{Outcome: "ok", Message: code})
				if err != nil {
					failed <- err
					return
				}
				fmt.Printf("program %d %s\n", id, code)
			}
		}()
	}
	go func() {
		for n := 1; ; n = n%5 + 1 {
			if err := childHidden(s, n); err != nil {
				failed <- err
				return
			}
			fmt.Printf("hidden %d\n", n)
		}
	}()
	return <-failed
}

func childHidden(s *Store, n int) error {
	if err := s.SaveRound(context.Background(), Round{N: n, Stage: Formed}); err != nil {
		return err
	}
	return s.SaveHidden(context.Background(), Main, n, Means, []int{30, 100}, sevenths(3000))
}
