/**
 * Known machines: which tools they offer, when they were seen, and which sessions wait for one that disconnected. Does not store
 * whether a machine is connected now: the sockets show that.
 */
import { caseProblem, isReserved, machineNameProblem } from "../../kernel/machine-name.ts";
import {
  asCapability,
  asNodeId,
  type Capability,
  type ClientInfo,
  type NodeDesktop,
  type NodeEntry,
  type NodeRuntime,
  type NodeSandbox,
  type SandboxProfile,
  type ToolDefinition,
} from "../../../../protocol/gen/types.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { Problem } from "../../ports/result.ts";

export interface NodeOffer {
  readonly nodeId: string;
  readonly tools: readonly ToolDefinition[];
  readonly ledger: boolean;
}
type Row = {
  id: string;
  first_seen_at: number;
  last_seen_at: number;
  last_connected_at: number | null;
  last_disconnected_at: number | null;
  platform: string | null;
  version: string | null;
  ledger: number;
  tools: string;
  host_capabilities: string;
  tool_capabilities: string;
  waiting: string;
  /** JSON; null when the machine did not report it. */
  sandbox: string | null;
  desktop: string | null;
  workspace: string | null;
  /** JSON; null when the machine did not report it. */
  file_roots: string | null;
};

/** The largest number of sessions that wait for one machine. */
export const MAX_WAITING = 512;
/** The largest number of known machines. The one that was not seen for the longest time goes first. */
const MAX_NODES = 1000;
const FORGOTTEN = "nodes-forgotten";

/** The problem of a node's report about its tools; undefined when there is none. Pure. */
export function offerProblem(tools: readonly ToolDefinition[], runtime: NodeRuntime | undefined): string | undefined {
  const names = tools.map((tool) => tool.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return `The tool ${twice} is offered twice.`;
  if (runtime === undefined) return undefined;
  const host = new Set<string>(runtime.hostCapabilities);
  for (const [tool, capabilities] of Object.entries(runtime.toolCapabilities)) {
    if (!names.includes(tool)) return "nodeRuntime.toolCapabilities names a tool that is not offered.";
    if (capabilities.some((capability) => !host.has(capability)))
      return `The tool ${tool} needs a capability that nodeRuntime.hostCapabilities lacks.`;
  }
  return undefined;
}

export class Nodes {
  readonly #db: Database;
  /** A cache of the rows: tool lists are large and asked for often. */
  readonly #offers = new Map<string, NodeOffer>();

  /** A cache of when machines were seen, the last ones first: it is asked for with every message. */
  #seen: readonly { readonly id: string; readonly at: number }[] | undefined;
  /** The stored number; no other code changes it. */
  #forgotten: number | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  connected(client: ClientInfo, tools: readonly ToolDefinition[], runtime: NodeRuntime | undefined, ledger: boolean, now: number): void {
    this.#seen = undefined;
    run(
      this.#db.sql,
      `INSERT INTO nodes(id, first_seen_at, last_seen_at, last_connected_at, platform, version, ledger, tools, host_capabilities, tool_capabilities, waiting, sandbox, desktop, workspace, file_roots)
       VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '[]', ?, ?, ?, ?)
       ON CONFLICT(id) DO UPDATE SET last_seen_at = excluded.last_seen_at, last_connected_at = excluded.last_connected_at, platform = excluded.platform,
         version = excluded.version, ledger = excluded.ledger, tools = excluded.tools, host_capabilities = excluded.host_capabilities,
         tool_capabilities = excluded.tool_capabilities, waiting = '[]', sandbox = excluded.sandbox,
         desktop = excluded.desktop, workspace = excluded.workspace, file_roots = excluded.file_roots, silent_at = NULL`,
      client.id,
      now,
      now,
      now,
      client.platform,
      client.version,
      ledger ? 1 : 0,
      JSON.stringify(tools),
      JSON.stringify(runtime?.hostCapabilities ?? []),
      JSON.stringify(runtime?.toolCapabilities ?? {}),
      runtime?.sandbox === undefined ? null : JSON.stringify(runtime.sandbox),
      runtime?.desktop === undefined ? null : JSON.stringify(runtime.desktop),
      runtime?.workspace ?? null,
      runtime?.fileRoots === undefined ? null : JSON.stringify(runtime.fileRoots),
    );
    run(this.#db.sql, "DELETE FROM nodes WHERE id IN (SELECT id FROM nodes ORDER BY last_seen_at DESC, id LIMIT -1 OFFSET ?)", MAX_NODES);
    this.#offers.set(client.id, { nodeId: client.id, tools, ledger });
  }

  /** `waiting`: refs of sessions with open calls on the machine. */
  disconnected(nodeId: string, waiting: readonly string[], now: number): void {
    this.#seen = undefined;
    run(
      this.#db.sql,
      "UPDATE nodes SET last_seen_at = ?, last_disconnected_at = ?, waiting = ? WHERE id = ?",
      now,
      now,
      JSON.stringify(waiting.slice(0, MAX_WAITING)),
      nodeId,
    );
  }

  /** The link of a machine was cut because nothing was heard. */
  silent(nodeId: string, now: number): void {
    run(this.#db.sql, "UPDATE nodes SET silent_at = ? WHERE id = ?", now, nodeId);
  }
  /** The owner has been told, or need not be. */
  silentTold(nodeId: string): void {
    run(this.#db.sql, "UPDATE nodes SET silent_at = NULL WHERE id = ?", nodeId);
  }
  /** Machines that were cut off and are not back, the first one first. */
  silentSince(limit: number): readonly { readonly nodeId: string; readonly at: number }[] {
    return all<{ id: string; silent_at: number }>(
      this.#db.sql,
      "SELECT id, silent_at FROM nodes WHERE silent_at IS NOT NULL ORDER BY silent_at LIMIT ?",
      limit,
    ).map(({ id, silent_at }) => ({ nodeId: id, at: silent_at }));
  }

  /** Machines whose last connection has no recorded end. */
  neverLeft(): readonly string[] {
    return all<{ id: string }>(
      this.#db.sql,
      "SELECT id FROM nodes WHERE last_connected_at IS NOT NULL AND (last_disconnected_at IS NULL OR last_disconnected_at < last_connected_at)",
    ).map((row) => row.id);
  }

  waiting(nodeId: string): readonly string[] {
    return stringList(one<{ waiting: string }>(this.#db.sql, "SELECT waiting FROM nodes WHERE id = ?", nodeId)?.waiting ?? "[]");
  }

  /** Changes when a machine is forgotten. The sockets show when one connects or leaves. */
  version(): number {
    this.#forgotten ??= this.#db.kv.get<number>(FORGOTTEN) ?? 0;
    return this.#forgotten;
  }

  /** Machines that were seen since then, the last ones first. */
  seenSince(since: number): readonly string[] {
    this.#seen ??= all<{ id: string; at: number }>(this.#db.sql, "SELECT id, last_seen_at AS at FROM nodes ORDER BY last_seen_at DESC, id");
    return this.#seen.filter(({ at }) => at >= since).map(({ id }) => id);
  }
  /** Why no machine may connect by this name for the first time. */
  nameProblem(nodeId: string): Problem | undefined {
    const known = all<{ id: string }>(this.#db.sql, "SELECT id FROM nodes WHERE id = ? COLLATE NOCASE", nodeId).map(({ id }) => id);
    // `GSV` was a name in earlier versions.
    const isKept = isReserved(nodeId) && known.includes(nodeId);
    return (isKept ? undefined : machineNameProblem(nodeId)) ?? caseProblem(nodeId, known);
  }
  exists(nodeId: string): boolean {
    return one(this.#db.sql, "SELECT 1 AS there FROM nodes WHERE id = ?", nodeId) !== undefined;
  }

  offer(nodeId: string): NodeOffer | undefined {
    const known = this.#offers.get(nodeId);
    if (known !== undefined) return known;
    const row = one<Pick<Row, "tools" | "ledger">>(this.#db.sql, "SELECT tools, ledger FROM nodes WHERE id = ?", nodeId);
    if (row === undefined) return undefined;
    const offer: NodeOffer = { nodeId, tools: JSON.parse(row.tools) as ToolDefinition[], ledger: row.ledger === 1 };
    this.#offers.set(nodeId, offer);
    return offer;
  }

  /** What the machine has reported for its commands. */
  sandboxOf(nodeId: string): SandboxProfile | undefined {
    const row = one<Pick<Row, "sandbox">>(this.#db.sql, "SELECT sandbox FROM nodes WHERE id = ?", nodeId);
    return row?.sandbox == null ? undefined : (JSON.parse(row.sandbox) as NodeSandbox).profile;
  }

  list(isOnline: (nodeId: string) => boolean, isReturning: (nodeId: string) => boolean): readonly NodeEntry[] {
    return all<Row>(this.#db.sql, "SELECT * FROM nodes ORDER BY id").map((row) => ({
      nodeId: asNodeId(row.id),
      online: isOnline(row.id),
      ...(!isOnline(row.id) && isReturning(row.id) ? { returning: true as const } : {}),
      hostCapabilities: capabilityList(row.host_capabilities),
      toolCapabilities: JSON.parse(row.tool_capabilities) as Record<string, Capability[]>,
      tools: (JSON.parse(row.tools) as ToolDefinition[]).map((tool) => tool.name),
      ledger: row.ledger === 1,
      firstSeenAt: row.first_seen_at,
      lastSeenAt: row.last_seen_at,
      ...(row.last_connected_at === null ? {} : { lastConnectedAt: row.last_connected_at }),
      ...(row.last_disconnected_at === null ? {} : { lastDisconnectedAt: row.last_disconnected_at }),
      ...(row.platform === null ? {} : { clientPlatform: row.platform }),
      ...(row.version === null ? {} : { clientVersion: row.version }),
      ...(row.sandbox === null ? {} : { sandbox: JSON.parse(row.sandbox) as NodeSandbox }),
      ...(row.desktop === null ? {} : { desktop: JSON.parse(row.desktop) as NodeDesktop }),
      ...(row.workspace === null ? {} : { workspace: row.workspace }),
      ...(row.file_roots === null ? {} : { fileRoots: JSON.parse(row.file_roots) as string[] }),
    }));
  }

  /** True: the machine was known. */
  forget(nodeId: string): boolean {
    this.#offers.delete(nodeId);
    this.#seen = undefined;
    const removed = one(this.#db.sql, "DELETE FROM nodes WHERE id = ? RETURNING id", nodeId) !== undefined;
    if (removed) {
      this.#forgotten = this.version() + 1;
      this.#db.kv.put(FORGOTTEN, this.#forgotten);
    }
    return removed;
  }
}

const stringList = (json: string): readonly string[] => {
  const value: unknown = JSON.parse(json);
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
};
const capabilityList = (json: string): Capability[] => stringList(json).map(asCapability);
