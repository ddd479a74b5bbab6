/**
 * Stores the configuration: the settings, the effective values, and a version that changes with each change. Secrets are stored sealed
 * (`sealed.ts`). Only `access` gives secrets.
 */
import { type AgentConfig, asAgentId, type GsvConfig } from "../../../../protocol/gen/types.ts";
import { type Change, type ChangeCheck, type ConfigReading, NO_CHECK, readPath, setPath, settle, unsetPath } from "./change.ts";
import { effective, secretValues, withoutSecrets } from "./effective.ts";
import { type Replaced, replaceAll } from "./whole.ts";
import { formatPath, parsePath } from "./paths.ts";
import { hasSameReceivers } from "./receivers.ts";
import { blankedSecrets, hasNewSecret, isWithin, type LostSecret, openConfig, sealConfig } from "./sealed.ts";
import { isSecretPath } from "./schema.ts";
import { leavesOf, setAt, withoutAt } from "./tree.ts";
import { checkGsvConfig } from "../../../../protocol/gen/validators/checks.js";
import { persistedObject, snapshot } from "../../platform/persisted-object.ts";
import type { Database } from "../../platform/sql.ts";
import { agentsOf, defaultAgentOf, MAIN_AGENT } from "../routing/agents.ts";
import type { Result } from "../../ports/result.ts";
import type { EffectiveConfig, ModelAccess } from "../../ports/run-context.ts";
import type { ReadKeys } from "../../../../protocol/runtime/sealing.ts";
import { fail } from "../outcome.ts";

/** Shorter secrets are ordinary words in other texts. */
const MIN_SECRET = 8;
const PREFIX = "config:";
const VERSION = "config-version";

/** How secrets are sealed. Without keys no secret is stored, and plain ones of earlier versions are still read. */
export interface Sealing {
  readonly keys: ReadKeys;
  /** New random bytes. */
  readonly nonce: () => Uint8Array;
}
const NO_KEYS: Sealing = { keys: { ok: false, problem: "missing" }, nonce: () => new Uint8Array() };

export class Config {
  readonly #db: Database;
  readonly #onSecrets: (secrets: readonly string[]) => void;
  readonly #sealing: Sealing;
  #cached:
    | {
        readonly set: GsvConfig;
        readonly lost: readonly LostSecret[];
        readonly toSeal: number;
        readonly whole: EffectiveConfig;
        readonly clean: EffectiveConfig;
        readonly version: number;
      }
    | undefined;

  /** Agents that no setting lists, because they come with packs. */
  #bundled: () => readonly AgentConfig[] = () => [];

  /** `onSecrets` learns every secret value, so that the log can hide it. */
  constructor(db: Database, onSecrets: (secrets: readonly string[]) => void, sealing = NO_KEYS) {
    this.#db = db;
    this.#onSecrets = onSecrets;
    this.#sealing = sealing;
  }

  get #keys() {
    const { keys } = this.#sealing;
    return keys.ok ? keys.keys : undefined;
  }

  #load() {
    if (this.#cached === undefined) {
      const { set, lost, toSeal } = openConfig(snapshot<GsvConfig>(this.#db.kv, PREFIX), this.#keys);
      const whole = effective(set);
      this.#cached = { set, lost, toSeal, whole, clean: withoutSecrets(whole), version: this.#db.kv.get<number>(VERSION) ?? 0 };
      this.#onSecrets(secretValues(whole));
    }
    return this.#cached;
  }

  /** Secrets that are stored and cannot be opened, by path: their key is missing, or they were changed. */
  unreadable(): readonly string[] {
    return this.#load().lost.map(({ path }) => formatPath(path));
  }

  /** Seals what is stored plain or under an earlier key, in one transaction; returns how many secrets that were. */
  sealStored(): number {
    const { toSeal, set, lost } = this.#load();
    if (toSeal === 0 || this.#keys === undefined) return 0;
    this.#db.transactionSync(() => {
      // Overwritten in place first, so that no plain text stays in the free space of a page.
      this.#write(blankedSecrets(snapshot<GsvConfig>(this.#db.kv, PREFIX)));
      this.#write(sealConfig(set, this.#keys, this.#sealing.nonce, lost));
    });
    this.#cached = undefined;
    this.#load();
    return toSeal;
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
    return agentsOf([...(this.effective().agents?.list ?? []), ...this.#bundled()]);
  }

  hasAgent(agentId: string): boolean {
    return agentId === MAIN_AGENT || this.#listed(agentId) !== undefined || this.isBundled(agentId);
  }

  /** An agent's settings; the defaults for one that is not listed. */
  agent(agentId: string): AgentConfig {
    return this.#listed(agentId) ?? this.#bundled().find(({ id }) => id === agentId) ?? { id: asAgentId(agentId) };
  }
  #listed(agentId: string): AgentConfig | undefined {
    return this.effective().agents?.list?.find((agent) => agent.id === agentId);
  }

  /** From now on these are agents, too: none of them is listed. What it gives changes only with the configuration's version. */
  bundled(agents: () => readonly AgentConfig[]): void {
    this.#bundled = agents;
  }
  /** The agent comes with a pack, so it is not changed here. */
  isBundled(agentId: string): boolean {
    return this.#bundled().some(({ id }) => id === agentId);
  }

  /** What may be shown: secrets masked. */
  read(path: string | undefined): Result<ConfigReading> {
    return readPath(this.#load().set, path);
  }

  set(path: string, value: unknown, check?: ChangeCheck): Result<Change> {
    const { set } = this.#load();
    const change = setPath(set, path, value, check);
    if (!change.ok) return change;
    const refused = this.#refusal(change.value.config, set);
    if (refused !== undefined) return refused;
    if (change.value.changed || this.#hasLostAt(path)) this.#store(change.value.config, path);
    return change;
  }

  unset(path: string, check?: ChangeCheck): Result<Change & { readonly wasSet: boolean }> {
    const change = unsetPath(this.#load().set, path, check);
    if (!change.ok) return change;
    const hadLost = this.#hasLostAt(path);
    if (change.value.changed || hadLost) this.#store(change.value.config, path);
    return hadLost ? { ok: true, value: { ...change.value, wasSet: true } } : change;
  }

  /** Why a new secret can't be stored. */
  #refusal(next: Readonly<GsvConfig>, before: Readonly<GsvConfig>) {
    const { keys } = this.#sealing;
    if (keys.ok || !hasNewSecret(next, before)) return undefined;
    return keys.problem === "missing" ? NO_KEY : BAD_KEYS;
  }

  /** Whether secrets that cannot be opened are stored at or below a path. */
  #hasLostAt(path: string): boolean {
    const at = parsePath(path);
    return at !== undefined && this.#load().lost.some((lost) => isWithin(lost.path, at));
  }

  /** Replaces the whole by an edited copy of what was shown at `version` (rule CF1). */
  replace(edited: unknown, version: number, check?: ChangeCheck): Result<Replaced> {
    if (version !== this.version()) return fail("config.changed");
    const { set } = this.#load();
    const replaced = replaceAll(set, edited, check);
    if (!replaced.ok) return replaced;
    const refused = this.#refusal(replaced.value.config, set);
    if (refused !== undefined) return refused;
    if (replaced.value.changed.length > 0) this.#store(replaced.value.config);
    return replaced;
  }

  /** For a move (rule MV3): the settings without secrets, and the paths of those that stay. A text that contains a secret is one. */
  moving(): { readonly settings: GsvConfig; readonly secrets: readonly string[] } {
    const { set, lost } = this.#load();
    const hidden = secretValues(set).filter((secret) => secret.length >= MIN_SECRET);
    const isLeft = (path: readonly string[], leaf: unknown): boolean =>
      typeof leaf === "string" && (isSecretPath(path) || hidden.some((secret) => leaf.includes(secret)));
    const left = [...leavesOf(set)].filter(([path, leaf]) => isLeft(path, leaf)).map(([path]) => path);
    const settings = left.reduce<unknown>((rest, path) => withoutAt(rest, path), set) as GsvConfig;
    return { settings, secrets: [...left, ...lost.map(({ path }) => path)].map(formatPath).sort() };
  }
  /**
   * Takes over the settings of another gateway. Keeps a secret of this gateway only if the same address still receives it (rules MV3, MV17),
   * and returns the paths of the removed ones. Nothing is stored when the settings are refused. Throws when they do not fit the contract.
   */
  moveIn(settings: unknown): Result<readonly string[]> {
    const { set, lost } = this.#load();
    // An export has none, so these come from another program.
    const foreign = [...leavesOf(settings)].filter(([path]) => isSecretPath(path)).map(([path]) => path);
    const plain = foreign.reduce<unknown>((rest, path) => withoutAt(rest, path), settings);
    const own = [...leavesOf(set)].filter(([path, leaf]) => typeof leaf === "string" && isSecretPath(path));
    const all = own.reduce<unknown>((rest, [path, leaf]) => setAt(rest, path, leaf, () => ({})) ?? rest, plain);
    if (!checkGsvConfig(all)) throw new Error("the settings do not fit the contract");
    const [was, is] = [effective(set), effective(all)];
    const stays = (path: readonly string[]): boolean => hasSameReceivers(path, was, is);
    const gone = own.map(([path]) => path).filter((path) => !stays(path));
    const next = gone.reduce<unknown>((rest, path) => withoutAt(rest, path), all);
    // Settings that the other gateway had stored block nothing, as in any change.
    const settled = settle(next as GsvConfig, next, "the settings", NO_CHECK);
    if (!settled.ok) return settled;
    const refused = this.#refusal(settled.value.config, set);
    if (refused !== undefined) return refused;
    const lostNow = lost.filter(({ path }) => !stays(path));
    this.#storeWith(
      settled.value.config,
      lost.filter((secret) => !lostNow.includes(secret)),
    );
    return { ok: true, value: [...gone, ...lostNow.map(({ path }) => path)].map(formatPath).sort() };
  }

  /** The raw keys of the named providers, for a model call and nothing else. */
  access(providers: readonly string[]): ModelAccess {
    const { whole } = this.#load();
    const keys = Object.entries(whole.apiKeys ?? {}).filter(([provider]) => providers.includes(provider));
    return { apiKeys: Object.fromEntries(keys), headers: { ...whole.model.headers } };
  }

  /** The secrets of a pack, for its own code and nothing else. */
  packSecrets(pack: string): Readonly<Record<string, string>> {
    return { ...this.#load().whole.packs?.secrets?.[pack] };
  }

  /** The headers of the collector of traces, for an export and nothing else. */
  telemetryHeaders(): Readonly<Record<string, string>> {
    return { ...this.#load().whole.telemetry?.otlp?.headers };
  }

  /** Secrets that cannot be opened stay, except at or below the path that was changed. */
  #store(config: GsvConfig, changed?: string): void {
    const { lost } = this.#load();
    const at = changed === undefined ? undefined : parsePath(changed);
    this.#storeWith(config, at === undefined ? lost : lost.filter(({ path }) => !isWithin(path, at)));
  }
  #storeWith(config: GsvConfig, lost: readonly LostSecret[]): void {
    const { version } = this.#load();
    this.#db.transactionSync(() => {
      this.#write(sealConfig(config, this.#keys, this.#sealing.nonce, lost));
      this.#db.kv.put(VERSION, version + 1);
    });
    this.#cached = undefined;
    this.#load();
  }

  #write(config: GsvConfig): void {
    const stored = persistedObject<GsvConfig>(this.#db.kv, PREFIX);
    for (const name of Object.keys(stored)) if (!Object.hasOwn(config, name)) Reflect.deleteProperty(stored, name);
    Object.assign(stored, config);
  }
}

const NO_KEY = fail("config.no_sealing_key", "This gateway has no key to encrypt secrets with, so the secret was not stored.");
const BAD_KEYS = fail(
  "config.no_sealing_key",
  "SEALING_KEYS of this gateway is not a list of keys of 64 hex digits, so the secret was not stored.",
);
