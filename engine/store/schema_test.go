package store

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skep/problems/spec"
)

// SCHEMA.md and the real tables say the same: every table, column, type and null, in the same order.
func TestSchemaPage(t *testing.T) {
	page, err := os.ReadFile("SCHEMA.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	var table string
	for _, line := range strings.Split(string(page), "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			table = name
		} else if c := strings.Split(line, "|"); table != "" && len(c) >= 6 && !strings.HasPrefix(line, "|--") && strings.TrimSpace(c[1]) != "column" {
			documented[table] = append(documented[table], strings.TrimSpace(c[1])+" "+strings.TrimSpace(c[2])+" "+strings.TrimSpace(c[3]))
		}
	}
	s := create(t)
	rows, err := s.db.Query(`SELECT m.name, i.name || ' ' || i.type || ' ' || iif(i."notnull", 'no', 'yes')
		FROM sqlite_schema m, pragma_table_info(m.name) i WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, i.cid`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	real := map[string][]string{}
	for rows.Next() {
		var table, line string
		if err := rows.Scan(&table, &line); err != nil {
			t.Fatal(err)
		}
		real[table] = append(real[table], line)
	}
	for table := range documented {
		if !slices.Equal(documented[table], real[table]) {
			t.Errorf("%s\ndocumented %q\nreal       %q", table, documented[table], real[table])
		}
		delete(real, table)
	}
	if len(real) != 0 || len(documented) != 10 {
		t.Errorf("%d tables documented, not %v", len(documented), real)
	}
}

// The outcomes that the database takes are the judge's closed set, no more and no fewer.
func TestOutcomes(t *testing.T) {
	var want []string
	for _, o := range spec.Outcomes() {
		want = append(want, string(o))
	}
	list := regexp.MustCompile(`(?s)outcome IN \((.*?)\)`).FindStringSubmatch(schema)
	if got := regexp.MustCompile(`[a-z_]+`).FindAllString(list[1], -1); !slices.Equal(got, want) {
		t.Errorf("schema.sql takes %q, package spec has %q", got, want)
	}
	page, err := os.ReadFile("SCHEMA.md")
	if err != nil || !strings.Contains(string(page), strings.Join(want, ", ")) {
		t.Errorf("SCHEMA.md does not list %q, %v", want, err)
	}
}

// The settings that durability and the checks rest on are on.
func TestSettings(t *testing.T) {
	s := create(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "user_version": strconv.Itoa(Version)} {
		var got string
		if err := s.writer.conn.QueryRowContext(context.Background(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, want %s (%v)", pragma, got, want, err)
		}
	}
	if _, err := s.Reader.db.Exec("DELETE FROM meta"); err == nil {
		t.Error("a reader may write")
	}
}
