package wire

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Connection is the content of a Jupyter connection file. Field names are Jupyter's.
type Connection struct {
	Transport       string `json:"transport"` // "tcp" or "ipc"
	IP              string `json:"ip"`        // host, "*" for all; with ipc the path prefix
	ShellPort       int    `json:"shell_port"`
	IOPubPort       int    `json:"iopub_port"`
	StdinPort       int    `json:"stdin_port"`
	ControlPort     int    `json:"control_port"`
	HBPort          int    `json:"hb_port"`
	Key             string `json:"key"` // empty: messages are not signed
	SignatureScheme string `json:"signature_scheme"`
	KernelName      string `json:"kernel_name,omitempty"`
}

// ReadConnection reads and checks a connection file.
func ReadConnection(path string) (Connection, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Connection{}, fmt.Errorf("connection file: %w", err)
	}
	c := Connection{Transport: "tcp", IP: "127.0.0.1", SignatureScheme: "hmac-sha256"} // what the file leaves out
	if err := json.Unmarshal(b, &c); err != nil {
		return Connection{}, fmt.Errorf("connection file %s: %w", path, err)
	}
	if err := c.check(); err != nil {
		return Connection{}, fmt.Errorf("connection file %s: %w", path, err)
	}
	return c, nil
}

func (c Connection) check() error {
	if c.Transport != "tcp" && c.Transport != "ipc" {
		return fmt.Errorf("transport %q: only tcp and ipc are known", c.Transport)
	}
	if c.Key != "" && schemes[c.SignatureScheme] == nil {
		return fmt.Errorf("signature_scheme %q: known are %s", c.SignatureScheme, strings.Join(slices.Sorted(maps.Keys(schemes)), ", "))
	}
	for name, port := range map[string]int{"shell_port": c.ShellPort, "iopub_port": c.IOPubPort, "stdin_port": c.StdinPort, "control_port": c.ControlPort, "hb_port": c.HBPort} {
		if port <= 0 || port > 65535 {
			return fmt.Errorf("%s is %d; want 1 to 65535", name, port)
		}
	}
	return nil
}

// Endpoint returns the ZeroMQ endpoint of one of the connection's ports.
func (c Connection) Endpoint(port int) string {
	if c.Transport == "ipc" {
		return fmt.Sprintf("ipc://%s-%d", c.IP, port)
	}
	host := c.IP
	if host == "*" { // ZeroMQ's name for all interfaces; Go's is empty
		host = ""
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// Signer returns the signer of the connection's key and scheme.
func (c Connection) Signer() *Signer {
	s := NewSigner(c.Key)
	if h := schemes[c.SignatureScheme]; h != nil {
		s.hash = h
	}
	return s
}

// NewConnection returns a loopback connection on five free ports with a random key. The ports are free when it
// returns; a kernel started right after binds them.
func NewConnection() (Connection, error) {
	c := Connection{Transport: "tcp", IP: "127.0.0.1", SignatureScheme: "hmac-sha256", Key: rand.Text()}
	for _, port := range []*int{&c.ShellPort, &c.IOPubPort, &c.StdinPort, &c.ControlPort, &c.HBPort} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return c, fmt.Errorf("wire: no free port: %w", err)
		}
		defer l.Close() // all five stay open until the last is found, so that no port comes twice
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return c, nil
}

// Save writes the connection file, readable by the user only: it holds the key.
func (c Connection) Save(path string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}
