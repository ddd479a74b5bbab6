/** Stores the configuration: the settings, the effective values, and a version that changes with each change. Only `access` gives secrets. */
import { type AgentConfig, asAgentId, type GsvConfig } from "../../../../protocol/gen/types.ts";
import { type Change, type ChangeCheck, type ConfigReading, readPath, setPath, unsetPath } from "./change.ts";
import { fail } from "../outcome.ts";
import { effective, secretValues, withoutSecrets } from "./effective.ts";
import { type Replaced, replaceAll } from "./whole.ts";
import { persistedObject, snapshot } from "../../platform/persisted-object.ts";
import type { Database } from "../../platform/sql.ts";
import { agentsOf, defaultAgentOf, MAIN_AGENT } from "../routing/agents.ts";
import type { Result } from "../../ports/result.ts";
import type { EffectiveConfig, ModelAccess } from "../../ports/run-context.ts";

const PREFIX = "config:";
const VERSION = "config-version";

export class Config {
  readonly #db: Database;
  readonly #onSecrets: (secrets: readonly string[]) => void;
  #cached:
    | { readonly set: GsvConfig; readonly whole: EffectiveConfig; readonly clean: EffectiveConfig; readonly version: number }
    | undefined;

  /** `onSecrets` learns every secret value, so that the log can hide it. */
  constructor(db: Database, onSecrets: (secrets: readonly string[]) => void) {
    this.#db = db;
    this.#onSecrets = onSecrets;
  }

  #load() {
    if (this.#cached === undefined) {
      const set = snapshot<GsvConfig>(this.#db.kv, PREFIX);
      const whole = effective(set);
      this.#cached = { set, whole, clean: withoutSecrets(whole), version: this.#db.kv.get<number>(VERSION) ?? 0 };
      this.#onSecrets(secretValues(whole));
    }
    return this.#cached;
  }

  /** The effective configuration, without secrets. */
  effective(): EffectiveConfig {
    return this.#load().clean;
  }

  version(): number {
    return this.#load().version;
  }

  /** The owner's time zone, if it is set: without it clients show times in their machine's zone. */
  timeZone(): string | undefined {
    return this.#load().set.userTimezone;
  }

  mainKey(): string {
    return this.#load().clean.session.mainKey;
  }

  /** The agent that answers when no binding or key names another. */
  defaultAgentId(): string {
    return defaultAgentOf(this.effective().agents?.list);
  }

  /** All agents, the default one first. `main` always exists, listed or not. */
  agents(): readonly AgentConfig[] {
    return agentsOf(this.effective().agents?.list);
  }

  hasAgent(agentId: string): boolean {
    return agentId === MAIN_AGENT || (this.effective().agents?.list ?? []).some((agent) => agent.id === agentId);
  }

  /** An agent's settings; the defaults for one that is not listed. */
  agent(agentId: string): AgentConfig {
    return this.effective().agents?.list?.find((agent) => agent.id === agentId) ?? { id: asAgentId(agentId) };
  }

  /** What may be shown: secrets masked. */
  read(path: string | undefined): Result<ConfigReading> {
    return readPath(this.#load().set, path);
  }

  set(path: string, value: unknown, check?: ChangeCheck): Result<Change> {
    const change = setPath(this.#load().set, path, value, check);
    if (change.ok && change.value.changed) this.#store(change.value.config);
    return change;
  }

  unset(path: string, check?: ChangeCheck): Result<Change & { readonly wasSet: boolean }> {
    const change = unsetPath(this.#load().set, path, check);
    if (change.ok && change.value.changed) this.#store(change.value.config);
    return change;
  }

  /** Replaces the whole by an edited copy of what was shown at `version` (rule CF1). */
  replace(edited: unknown, version: number, check?: ChangeCheck): Result<Replaced> {
    if (version !== this.version()) return fail("config.changed");
    const replaced = replaceAll(this.#load().set, edited, check);
    if (replaced.ok && replaced.value.changed.length > 0) this.#store(replaced.value.config);
    return replaced;
  }

  /** The raw keys of the named providers, for a model call and nothing else. */
  access(providers: readonly string[]): ModelAccess {
    const { whole } = this.#load();
    const keys = Object.entries(whole.apiKeys ?? {}).filter(([provider]) => providers.includes(provider));
    return { apiKeys: Object.fromEntries(keys), headers: { ...whole.model.headers } };
  }

  #store(config: GsvConfig): void {
    const version = this.#load().version + 1;
    this.#db.transactionSync(() => {
      const stored = persistedObject<GsvConfig>(this.#db.kv, PREFIX);
      for (const name of Object.keys(stored)) if (!Object.hasOwn(config, name)) Reflect.deleteProperty(stored, name);
      Object.assign(stored, config);
      this.#db.kv.put(VERSION, version);
    });
    this.#cached = undefined;
    this.#load();
  }
}
