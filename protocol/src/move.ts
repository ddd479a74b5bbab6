/** Moves of a whole home from one gateway to another. Pages are text that only gateways read. Rules: gateway/spec/move.md. */
import { id, method, struct, t } from "./dsl.ts";

const MoveId = id("MoveId", "The id of a move: 128 random bits, made by the export.", { maxLength: 32, pattern: "^[0-9a-f]{32}$" });
const sha256 = t.string(64, { pattern: "^[0-9a-f]{64}$" });
const names = (most: number) => t.array(t.string(1024), most);
/** As in a page. The text of the whole page has more parts only when one record is larger than a frame. */
const part = t.int(0, 100000);

const MoveHome = struct("MoveHome", "What an export says about the home that it holds.", {
  moveId: MoveId,
  /** Version of the source's program. */
  version: t.string(64),
  madeAt: t.time(),
  /** The version of each set of tables, by its name. */
  levels: t.map(t.int()),
  /** Secret settings that are not in the export, and hooks whose secrets are not. */
  secrets: names(10000),
  hooks: names(1000),
  /** Machines and accounts of channels that must be connected again. */
  machines: names(10000),
  channels: names(1000),
});

/** Absent: none. */
const removedSecrets = t.optional(names(10000));

const admin = { callers: ["client"], scope: "admin" } as const;
method("move.describe", {
  doc: "Begins an export: says what the home of this gateway has. The gateway must be stopped. Nothing is stored.",
  result: { home: MoveHome },
  ...admin,
  audit: { target: null },
  errors: ["move.not_stopped", "move.in_progress", "storage.failed"],
  idempotent: true,
});
method("move.read", {
  doc: "Returns a part of a page of the home. `cursor` names the page: absent, the first one. `next` names the page after it; absent, it was the last one.",
  params: { cursor: t.optional(t.string(8192)), part: t.optional(part) },
  result: {
    text: t.text(),
    /** How many parts the page has. */
    parts: part,
    next: t.optional(t.string(8192)),
  },
  ...admin,
  audit: "none",
  errors: ["move.not_stopped", "move.changed", "move.in_progress", "storage.failed"],
  idempotent: true,
});
method("move.begin", {
  doc: "Begins an import into a fresh gateway, or goes on with it: `pages` have been applied. From then on the gateway refuses everything else until the import has ended.",
  params: { home: MoveHome },
  result: {
    pages: t.int(),
    /** The import had ended before. */
    isDone: t.bool(),
    /** As `move.finish` has returned them. */
    removedSecrets,
  },
  ...admin,
  audit: "own",
  errors: ["move.not_fresh", "move.in_progress", "move.newer_state", "move.older_state", "storage.failed"],
  idempotent: true,
});
method("move.write", {
  doc: "Sends a part of a page, from 1. The last part applies the page. A page that was applied before changes nothing.",
  params: { moveId: MoveId, page: t.int(1, 100000000), part, parts: part, text: t.text() },
  result: { pages: t.int() },
  ...admin,
  audit: "none",
  errors: ["move.none", "move.damaged", "move.newer_state", "storage.failed"],
  idempotent: true,
});
method("move.finish", {
  doc: "Ends an import: compares and counts, then writes the gateway's own tables in one transaction and resumes. `sha256` is the digest of the pages: of the digest before, and the digest of the page, as hex texts.",
  params: { moveId: MoveId, pages: t.int(1, 100000000), sha256 },
  result: {
    objects: t.int(),
    bytes: t.int(),
    sessions: t.int(),
    jobs: t.int(),
    rows: t.int(),
    /** Secrets of this gateway that were removed, because the imported settings name another address for them. Enter them again. */
    removedSecrets,
  },
  ...admin,
  audit: "own",
  errors: ["move.none", "move.damaged", "storage.failed"],
  idempotent: true,
});
method("move.cancel", {
  doc: "Gives an import up and removes what it has written.",
  result: { wasBegun: t.bool() },
  ...admin,
  audit: { target: null },
  errors: ["move.damaged", "storage.failed"],
  idempotent: true,
});
