-- The tables of run.db. SCHEMA.md says what each column means; a test holds the two together.
CREATE TABLE meta (
  one              INTEGER PRIMARY KEY CHECK (one = 1),
  run_id           TEXT NOT NULL,
  created          REAL NOT NULL,
  skep_version     TEXT NOT NULL,
  problem          TEXT NOT NULL,
  model            TEXT NOT NULL,
  model_hash       TEXT NOT NULL,
  backend          TEXT NOT NULL,
  profile          TEXT NOT NULL,
  seed             INTEGER NOT NULL,
  options          TEXT NOT NULL CHECK (json_valid(options)),
  assumptions      TEXT NOT NULL CHECK (json_valid(assumptions)),
  assumptions_hash TEXT NOT NULL,
  branch           TEXT NOT NULL
);

CREATE TABLE programs (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  hash          TEXT NOT NULL,
  branch        TEXT NOT NULL,
  round         INTEGER NOT NULL CHECK (round >= 0),
  swarm         INTEGER CHECK (swarm >= 0),
  kind          TEXT NOT NULL CHECK (kind IN ('refine', 'hybridize', 'explore', 'fresh', 'tuner', 'initial')),
  parents       TEXT NOT NULL CHECK (json_valid(parents)),
  description   TEXT NOT NULL,
  code          TEXT NOT NULL,
  created       REAL NOT NULL,
  lines_added   INTEGER NOT NULL,
  lines_removed INTEGER NOT NULL
);
CREATE INDEX programs_hash ON programs (hash);

CREATE TABLE evaluations (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  program        INTEGER NOT NULL REFERENCES programs (id),
  repeat         INTEGER NOT NULL CHECK (repeat >= 0),
  outcome        TEXT NOT NULL CHECK (outcome IN (
    'ok', 'infeasible', 'duplicate', 'suspicious', 'no_result', 'bad_result', 'exception', 'syntax_error', 'crash',
    'timeout_wall', 'timeout_cpu', 'oom', 'output_limit', 'result_limit', 'forbidden_syscall', 'infra_error')),
  message        TEXT NOT NULL,
  value          REAL,
  claim          REAL,
  strict         INTEGER CHECK (strict IN (0, 1)),
  search_score   REAL,
  table1_score   REAL,
  table_s5_value REAL,
  strict_value   REAL,
  margins        TEXT NOT NULL CHECK (json_valid(margins)),
  frame          BLOB CHECK (length(frame) <= 16777216),
  stdout         TEXT NOT NULL,
  stderr         TEXT NOT NULL,
  cpu            REAL NOT NULL,
  wall           REAL NOT NULL,
  tier           TEXT NOT NULL,
  host           TEXT NOT NULL,
  created        REAL NOT NULL,
  UNIQUE (program, repeat)
);
CREATE INDEX evaluations_score ON evaluations (search_score) WHERE outcome = 'ok';

CREATE TABLE rounds (
  branch  TEXT NOT NULL,
  round   INTEGER NOT NULL CHECK (round >= 0),
  stage   TEXT NOT NULL CHECK (stage IN (
    'formed', 'reasoned', 'filtered', 'written', 'tuned', 'evaluated', 'committed')),
  forked  TEXT NOT NULL,
  seen    INTEGER NOT NULL,
  started REAL NOT NULL,
  extra   TEXT NOT NULL CHECK (json_valid(extra)),
  PRIMARY KEY (branch, round)
);

CREATE TABLE swarms (
  branch      TEXT NOT NULL,
  round       INTEGER NOT NULL,
  swarm       INTEGER NOT NULL CHECK (swarm >= 0),
  kind        TEXT NOT NULL CHECK (kind IN ('refine', 'hybridize', 'explore', 'fresh')),
  focus       TEXT NOT NULL,
  parents     TEXT NOT NULL CHECK (json_valid(parents)),
  temperature REAL NOT NULL,
  stage       TEXT NOT NULL CHECK (stage IN (
    'formed', 'reasoned', 'filtered', 'written', 'tuned', 'evaluated', 'committed')),
  stale       INTEGER NOT NULL CHECK (stale IN (0, 1)),
  kept        TEXT NOT NULL CHECK (json_valid(kept)),
  view        TEXT NOT NULL CHECK (json_valid(view)),
  extra       TEXT NOT NULL CHECK (json_valid(extra)),
  PRIMARY KEY (branch, round, swarm),
  FOREIGN KEY (branch, round) REFERENCES rounds (branch, round)
) WITHOUT ROWID;

CREATE TABLE agents (
  branch   TEXT NOT NULL,
  round    INTEGER NOT NULL,
  swarm    INTEGER NOT NULL,
  agent    INTEGER NOT NULL CHECK (agent >= 0),
  phrasing INTEGER NOT NULL,
  way      INTEGER NOT NULL,
  parent   INTEGER REFERENCES programs (id),
  prompt   TEXT NOT NULL,
  tokens   INTEGER NOT NULL,
  kept     INTEGER NOT NULL CHECK (kept IN (0, 1)),
  dropped  INTEGER NOT NULL CHECK (dropped IN (0, 1)),
  PRIMARY KEY (branch, round, swarm, agent),
  FOREIGN KEY (branch, round, swarm) REFERENCES swarms (branch, round, swarm)
) WITHOUT ROWID;

CREATE TABLE summaries (
  branch      TEXT NOT NULL,
  round       INTEGER NOT NULL,
  swarm       INTEGER NOT NULL,
  replicate   INTEGER NOT NULL CHECK (replicate >= 0),
  program     INTEGER REFERENCES programs (id),
  text        TEXT NOT NULL,
  reason      TEXT NOT NULL,
  tokens      INTEGER NOT NULL,
  seconds     REAL NOT NULL,
  drafted     INTEGER NOT NULL,
  accepted    INTEGER NOT NULL,
  temperature REAL NOT NULL,
  PRIMARY KEY (branch, round, swarm, replicate),
  FOREIGN KEY (branch, round, swarm) REFERENCES swarms (branch, round, swarm)
) WITHOUT ROWID;

CREATE TABLE stages (
  branch  TEXT NOT NULL,
  round   INTEGER NOT NULL,
  run     INTEGER NOT NULL CHECK (run >= 0),
  stage   TEXT NOT NULL,
  swarm   INTEGER CHECK (swarm >= 0),
  started REAL NOT NULL,
  seconds REAL NOT NULL,
  PRIMARY KEY (branch, round, run),
  FOREIGN KEY (branch, round) REFERENCES rounds (branch, round)
) WITHOUT ROWID;

CREATE TABLE hidden (
  branch TEXT NOT NULL,
  round  INTEGER NOT NULL,
  what   TEXT NOT NULL CHECK (what IN ('means', 'margins', 'trajectories')),
  file   TEXT NOT NULL UNIQUE,
  dtype  TEXT NOT NULL CHECK (dtype IN ('<f2', '<f4')),
  shape  TEXT NOT NULL CHECK (json_valid(shape)),
  sha256 TEXT NOT NULL,
  bytes  INTEGER NOT NULL,
  PRIMARY KEY (branch, round, what),
  FOREIGN KEY (branch, round) REFERENCES rounds (branch, round)
) WITHOUT ROWID;

CREATE TABLE events (
  id    INTEGER PRIMARY KEY AUTOINCREMENT,
  time  REAL NOT NULL,
  level TEXT NOT NULL CHECK (level IN ('DEBUG', 'INFO', 'WARN', 'ERROR')),
  line  TEXT NOT NULL CHECK (json_valid(line))
);
