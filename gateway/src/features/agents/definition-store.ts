/**
 * Keeps the definitions that are in force (rule AD4), with the text that they were read from and the digests of their files. Must not read
 * files: what is in the bucket has no effect until it is defined.
 */
import type { AgentDefinition } from "../../../../protocol/gen/types.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { BundledDefinition } from "../../ports/packs.ts";
import type { DefinedAgent } from "../../ports/agents.ts";
import { Version } from "../../storage/version-store.ts";

export interface StoredDefinition extends DefinedAgent {
  readonly agentId: string;
  /** The text of agent.yaml. */
  readonly text: string;
  /** The SHA-256 of each file that the definition was made of, by its path beside agent.yaml. */
  readonly files: Readonly<Record<string, string>>;
  readonly definedAt: number;
  readonly definedBy: string;
}
type Row = {
  agent_id: string;
  text: string;
  definition: string;
  core_sha256: string;
  characteristics_sha256: string | null;
  files: string;
  defined_at: number;
  defined_by: string;
};

export class DefinitionStore {
  readonly #db: Database;
  readonly #version: Version;
  /** Asked for with every run; written by this object alone. */
  #known: ReadonlyMap<string, StoredDefinition> | undefined;

  readonly #bundled: () => readonly BundledDefinition[];
  #merged:
    | {
        readonly own: ReadonlyMap<string, StoredDefinition>;
        readonly bundled: readonly BundledDefinition[];
        readonly all: ReadonlyMap<string, StoredDefinition>;
      }
    | undefined;

  /** `bundled`: those of packs, which no row has. */
  constructor(db: Database, bundled: () => readonly BundledDefinition[]) {
    this.#db = db;
    this.#bundled = bundled;
    this.#version = new Version(db, "agent-definitions");
  }

  /** Rises with every change. */
  version(): number {
    return this.#version.get();
  }
  all(): ReadonlyMap<string, StoredDefinition> {
    const own = this.own();
    const bundled = this.#bundled();
    if (bundled.length === 0) return own;
    if (this.#merged?.own !== own || this.#merged.bundled !== bundled)
      this.#merged = { own, bundled, all: new Map([...own, ...bundled.map((each) => [each.agentId, ofPack(each)] as const)]) };
    return this.#merged.all;
  }
  /** Those that the owner has defined. */
  own(): ReadonlyMap<string, StoredDefinition> {
    this.#known ??= new Map(
      all<Row>(this.#db.sql, "SELECT * FROM agent_definitions ORDER BY agent_id").map((row) => [row.agent_id, stored(row)]),
    );
    return this.#known;
  }
  find(agentId: string): StoredDefinition | undefined {
    return this.all().get(agentId);
  }
  put({ agentId, text, definition, coreSha256, characteristicsSha256, files, definedAt, definedBy }: StoredDefinition): void {
    this.#change(() => {
      run(
        this.#db.sql,
        `INSERT INTO agent_definitions(agent_id, text, definition, core_sha256, characteristics_sha256, files, defined_at, defined_by)
         VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(agent_id) DO UPDATE SET text = excluded.text, definition = excluded.definition,
         core_sha256 = excluded.core_sha256, characteristics_sha256 = excluded.characteristics_sha256, files = excluded.files,
         defined_at = excluded.defined_at, defined_by = excluded.defined_by`,
        agentId,
        text,
        JSON.stringify(definition),
        coreSha256,
        characteristicsSha256 ?? null,
        JSON.stringify(files),
        definedAt,
        definedBy,
      );
    });
  }
  /** True: there was one. */
  remove(agentId: string): boolean {
    if (one<{ agent_id: string }>(this.#db.sql, "SELECT agent_id FROM agent_definitions WHERE agent_id = ?", agentId) === undefined)
      return false;
    this.#change(() => run(this.#db.sql, "DELETE FROM agent_definitions WHERE agent_id = ?", agentId));
    return true;
  }
  #change(change: () => void): void {
    this.#known = undefined;
    this.#db.transactionSync(() => {
      change();
      this.#version.raise();
    });
  }
}

/** The gateway wrote the row, so that it has the shape. */
const stored = (row: Row): StoredDefinition => ({
  agentId: row.agent_id,
  text: row.text,
  definition: JSON.parse(row.definition) as AgentDefinition,
  coreSha256: row.core_sha256,
  ...(row.characteristics_sha256 === null ? {} : { characteristicsSha256: row.characteristics_sha256 }),
  files: JSON.parse(row.files) as Record<string, string>,
  definedAt: row.defined_at,
  definedBy: row.defined_by,
});
const ofPack = ({ pack, ...bundled }: BundledDefinition): StoredDefinition => ({
  ...bundled,
  isOfPack: true,
  files: {},
  definedAt: 0,
  definedBy: `pack:${pack}`,
});
