/** Packs, as features and sessions see them (gateway/spec/packs.md). Only those that are on. Types only. */
import type { AgentConfig, AgentDefinition, GsvConfig } from "../../../protocol/gen/types.ts";
import type { Topic } from "../events/topics.ts";
import type { EventHandler } from "./events.ts";
import type { Result } from "./result.ts";
import type { ToolEntry } from "./tool-entry.ts";

export interface PackToolCall {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly callId: string;
}
/** For sessions, which have checked that their agent may use the tool. */
export interface PackToolPort {
  /** Safe to make again with the same `callId`. */
  packTool(call: PackToolCall): Promise<Result<unknown>>;
}
/** The definition of a pack's agent. */
export interface BundledDefinition {
  readonly agentId: string;
  readonly pack: string;
  readonly text: string;
  readonly definition: AgentDefinition;
  readonly coreSha256: string;
  readonly characteristicsSha256?: string;
}
export interface PacksPort {
  readonly packs: PackToolPort & {
    /** Changes with the definitions. */
    version(): string;
    entries(): readonly ToolEntry[];
    definitions(): readonly BundledDefinition[];
    agents(): readonly AgentConfig[];
    topics(): ReadonlyMap<string, Topic>;
    handlerOf(topic: string): EventHandler | undefined;
    /** A sentence about the pack that has this topic and is off, with how to turn it on. Undefined: there is none. */
    offPackOf(topic: string): Promise<string | undefined>;
    /** The same of an agent, by its id or by the name in its definition. */
    offPackOfAgent(agent: string): Promise<string | undefined>;
    /** The pack, on or off, that has an agent with one of these as its id or its name; and what is taken. */
    packWithAgent(names: readonly string[]): Promise<{ readonly pack: string; readonly taken: string } | undefined>;
    /** Before `problem`: loads the packs that could be meant. */
    prepare(): Promise<void>;
    /** What is wrong with the settings of packs, as a sentence; what was stored before blocks no other change. */
    problem(next: Readonly<GsvConfig>, before: Readonly<GsvConfig>): string | undefined;
    /** What packs that are on lack after a change of `path`, as sentences. */
    missing(path: string, now: Readonly<GsvConfig>): readonly string[];
    /** The agents of the owner by the names in their definitions, with which no pack may collide. */
    useNames(names: () => ReadonlyMap<string, string>): void;
  };
}
