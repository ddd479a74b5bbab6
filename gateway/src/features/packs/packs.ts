/**
 * The packs that are on: their tools, topics and agents, and nothing of any other (rules PK2 to PK6). What is on follows from the
 * configuration at each look; the code of a pack is loaded before it is on.
 */
import type { AgentConfig, EventEnvelope, GsvConfig } from "../../../../protocol/gen/types.ts";
import { asAgentId } from "../../../../protocol/gen/types.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { valueNestsDeeper } from "../../../../protocol/runtime/depth.ts";
import type { After } from "../../../../protocol/runtime/within.ts";
import type { Topic } from "../../events/topics.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { TOO_DEEP } from "../../packs/answers.ts";
import type { PackContext, PackDefinition, Packs as PackListing, PackTopic } from "../../packs/pack.ts";
import type { EventHandler } from "../../ports/events.ts";
import type { BundledDefinition, PacksPort, PackToolCall } from "../../ports/packs.ts";
import { failure, type Result } from "../../ports/result.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import { type CoreNames, type LoadedPack, loadPack } from "./load-pack.ts";
import { missingOfPacks } from "./missing.ts";
import { packProblem } from "./problem.ts";

export interface PacksPorts extends Pick<KernelPorts, "config" | "ids" | "log" | "now" | "scrub"> {
  readonly list: PackListing;
  readonly core: CoreNames;
  readonly fetch: PackContext["fetch"];
  readonly limit: PackContext["limit"];
  readonly wait: PackContext["wait"];
  readonly after: After;
}
/** Everything that follows from one state of the configuration. */
interface On {
  readonly key: string;
  readonly packs: readonly LoadedPack[];
  readonly entries: readonly ToolEntry[];
  readonly definitions: readonly BundledDefinition[];
  readonly agents: readonly AgentConfig[];
  readonly topics: ReadonlyMap<string, Topic>;
}

export class Packs {
  readonly #ports: PacksPorts;
  readonly #loading = new Map<string, Promise<LoadedPack>>();
  readonly #loaded = new Map<string, LoadedPack>();
  #isReady = false;
  #starting: Promise<void> | undefined;
  #on: On | undefined;
  #names: () => ReadonlyMap<string, string> = () => new Map();

  constructor(ports: PacksPorts) {
    this.#ports = ports;
    ports.config.bundled(() => this.#now().agents);
  }

  /** Waits for the packs that are on when the gateway starts. Undefined: there is nothing to wait for. A pack that cannot be loaded stays off. */
  ready(): Promise<void> | undefined {
    if (this.#isReady) return undefined;
    const enabled = this.#enabled();
    if (enabled.length === 0) this.#isReady = true;
    else
      this.#starting ??= this.#load(enabled).finally(() => {
        this.#isReady = true;
      });
    return this.#starting;
  }
  /** Never rejects: a failure is in the log, and is tried again after a restart and with the next change of packs. */
  async #load(packs: readonly PackDefinition[]): Promise<void> {
    const { core, ids, log } = this.#ports;
    await Promise.all(
      packs.map(async (pack) => {
        try {
          const loading = this.#loading.get(pack.name) ?? loadPack(pack, core, ids.sha256);
          this.#loading.set(pack.name, loading);
          const loaded = await loading;
          this.#checkNames(loaded);
          this.#loaded.set(pack.name, loaded);
        } catch (error) {
          this.#loading.delete(pack.name);
          log.error("pack_not_loaded", { pack: pack.name, error });
        }
      }),
    );
    this.#on = undefined;
  }
  /** Throws for a name that another pack has. */
  #checkNames(loaded: LoadedPack): void {
    const others = [...this.#loaded.values()].filter(({ pack }) => pack.name !== loaded.pack.name).flatMap(namesOf);
    const twice = namesOf(loaded).find((name) => others.includes(name));
    if (twice !== undefined) throw new Error(`Another pack has ${twice}, too.`);
  }
  #enabled(): readonly PackDefinition[] {
    const enabled = this.#ports.config.effective().packs?.enabled ?? [];
    return this.#ports.list.filter(({ name }) => enabled.includes(name));
  }
  #now(): On {
    const key = String(this.#ports.config.version());
    if (this.#on?.key === key) return this.#on;
    const packs = this.#enabled().flatMap(({ name }) => this.#loaded.get(name) ?? []);
    const own = new Set<string>((this.#ports.config.effective().agents?.list ?? []).map(({ id }) => id));
    // An agent that the owner had before the pack brought one stays theirs.
    const definitions = packs.flatMap((pack) => pack.definitions.filter(({ agentId }) => !own.has(agentId)));
    this.#on = {
      key,
      packs,
      entries: packs.flatMap((pack) => pack.entries),
      definitions,
      agents: definitions.map(({ agentId, definition: { metadata } }) => ({
        id: asAgentId(agentId),
        ...(metadata.description === undefined ? {} : { description: metadata.description }),
      })),
      topics: new Map(packs.flatMap((pack) => [...pack.topics])),
    };
    return this.#on;
  }

  entries(): readonly ToolEntry[] {
    return this.#now().entries;
  }
  /** The topics of the packs that are on. */
  topics(): ReadonlyMap<string, Topic> {
    return this.#now().topics;
  }
  port(): PacksPort["packs"] {
    return {
      version: () =>
        this.#now()
          .definitions.map(({ coreSha256 }) => coreSha256.slice(0, 8))
          .join(""),
      entries: () => this.entries(),
      definitions: () => this.#now().definitions,
      agents: () => this.#now().agents,
      topics: () => this.topics(),
      handlerOf: (topic) => this.#handlerOf(topic),
      offPackOf: (topic) => this.#offPackOf(({ topics }) => topics.has(topic)),
      offPackOfAgent: (agent) =>
        this.#offPackOf(({ definitions }) =>
          definitions.some(({ agentId, definition }) => agentId === agent || definition.metadata.name === agent),
        ),
      packWithAgent: (names) => this.#packWithAgent(names),
      prepare: () => this.#load(this.#ports.list),
      problem: (next, before) => this.#problem(next, before),
      missing: (path, now) => missingOfPacks(path, now, this.#ports.list),
      useNames: (names) => {
        this.#names = names;
      },
      packTool: (call) => this.#run(call),
    };
  }
  #problem(next: Readonly<GsvConfig>, before: Readonly<GsvConfig>): string | undefined {
    const agents = new Map([...this.#loaded].map(([name, { definitions }]) => [name, definitions]));
    return packProblem(next, before, { list: this.#ports.list, loaded: agents, ownNames: this.#names() });
  }
  /** What a pack has is known only when its code is loaded, which does not turn it on. */
  async #offPackOf(has: (pack: LoadedPack) => boolean): Promise<string | undefined> {
    const enabled = this.#enabled().map(({ name }) => name);
    await this.#load(this.#ports.list.filter(({ name }) => !enabled.includes(name) && !this.#loaded.has(name)));
    const off = [...this.#loaded.values()].find((pack) => !enabled.includes(pack.pack.name) && has(pack))?.pack.name;
    return off === undefined
      ? undefined
      : `The pack ${off} is off. Turn it on: \`gsv config set packs.enabled '${JSON.stringify([...enabled, off])}'\`.`;
  }
  async #packWithAgent(names: readonly string[]): Promise<{ readonly pack: string; readonly taken: string } | undefined> {
    await this.#load(this.#ports.list.filter(({ name }) => !this.#loaded.has(name)));
    for (const { pack, definitions } of this.#loaded.values()) {
      const has = definitions.flatMap(({ agentId, definition }) => [agentId, definition.metadata.name]);
      const taken = names.find((name) => has.includes(name));
      if (taken !== undefined) return { pack: pack.name, taken };
    }
    return undefined;
  }
  #handlerOf(topic: string): EventHandler | undefined {
    for (const { pack, handlers } of this.#now().packs) {
      const found = handlers.get(topic);
      if (found !== undefined) return (event) => this.#handle(pack, found, event);
    }
    return undefined;
  }
  async #run({ tool: name, args, callId }: PackToolCall): Promise<Result<unknown>> {
    for (const { pack, tools } of this.#now().packs) {
      const found = tools.get(name);
      if (found === undefined) continue;
      const problem = found.problem(args);
      if (problem !== undefined) return fail("tool.bad_args", `The arguments do not fit: ${problem}`);
      const timeoutMs = found.timeoutMs ?? this.#ports.config.effective().timeouts.toolMs;
      try {
        const result = await this.#inTime(timeoutMs, (signal) => found.run(args as never, this.#context(pack, signal), callId));
        if (result === undefined)
          return fail("tool.timeout", `The tool \`${name}\` did not end within ${timeoutMs / 1000} seconds and was stopped.`);
        return result.ok && valueNestsDeeper(result.value, LIMITS.valueDepth) ? failure("pack.rejected", TOO_DEEP) : result;
      } catch (error) {
        this.#ports.log.error("pack_tool_failed", { pack: pack.name, tool: name, error });
        return failure("internal", `The tool \`${name}\` failed inside GSV.`, "Try it again; if it fails again, tell the user.");
      }
    }
    const off = await this.#offPackOf(({ tools }) => tools.has(name));
    return failure("tool.unknown", off ?? `There is no tool \`${name.slice(0, 128)}\`.`);
  }
  async #handle(pack: PackDefinition, topic: PackTopic, event: EventEnvelope): Promise<Result<void>> {
    const done = await this.#inTime(LIMITS.eventHandlerMs, (signal) => topic.handle(event, this.#context(pack, signal)));
    return done ?? HANDLER_LATE;
  }
  /** Undefined: the time was over first, whatever the work gives later. The timer ends with the work, so that it keeps no object awake. */
  async #inTime<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const time = new AbortController();
    const cancel = this.#ports.after(ms, () => time.abort(new Error("the time of the call is over")));
    try {
      return await unlessLate(time.signal, work(time.signal));
    } finally {
      cancel();
    }
  }
  /** `signal`: the time of the call. What it asks for later is not sent. */
  #context({ name }: PackDefinition, signal: AbortSignal): PackContext {
    const { config, fetch, limit, wait, now, scrub } = this.#ports;
    const settings = config.effective().packs?.settings?.[name] ?? {};
    return {
      settings,
      secrets: config.packSecrets(name),
      fetch: (url, init) => fetch(url, { ...init, signal: init.signal ? AbortSignal.any([init.signal, signal]) : signal }),
      limit,
      wait: async (ms) => {
        await unlessLate(signal, wait(ms));
        signal.throwIfAborted();
      },
      now,
      signal,
      excerpt: (text, chars) => scrub(text).toWellFormed().slice(0, chars),
    };
  }
}

const HANDLER_LATE = failure("pack.unavailable", `The handler did not answer in ${LIMITS.eventHandlerMs / 60_000} minutes.`);
/** Undefined: the time is over. */
async function unlessLate<T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> {
  const late = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  try {
    const first = await Promise.race([work, late]);
    return signal.aborted ? undefined : first;
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

const namesOf = ({ tools, topics, definitions }: LoadedPack): readonly string[] => [
  ...[...tools.keys()].map((name) => `the tool ${name}`),
  ...[...topics.keys()].map((name) => `the topic ${name}`),
  ...definitions.flatMap(({ agentId, definition }) => [`the agent ${agentId}`, `an agent with the name ${definition.metadata.name}`]),
];
