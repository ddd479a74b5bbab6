/** The definition of an agent, as runs get it. Types only. */
import type { AgentDefinition } from "../../../protocol/gen/types.ts";

export interface DefinedAgent {
  readonly definition: AgentDefinition;
  /** The digest of the section that the definition gives the prompt's first layer. */
  readonly coreSha256: string;
  /** The digest of the second layer's section. Absent: the definition gives none. */
  readonly characteristicsSha256?: string;
  /** A pack brings the agent: its definition alone says what it is, so it has no first meeting. */
  readonly isOfPack?: true;
  /** What `events.emit` lets the agent emit: a sentence about each topic and its payload. Absent: nothing. */
  readonly emits?: readonly string[];
  /** The agents of `sub_agents` that exist. Absent: none. */
  readonly subAgents?: readonly { readonly name: string; readonly description?: string }[];
}

export interface AgentDefinitionsPort {
  /** The definition in force. Undefined: the agent has the defaults. */
  readonly definitionOf: (agentId: string) => AgentDefinition | undefined;
}
export interface AgentNamesPort {
  readonly agentNames: {
    /** The agent with this name in its definition; without a definition, with this id. */
    byName(name: string): string | undefined;
  };
}
/** Agents that get a job with each event of a topic. */
export interface AgentSubscribersPort {
  readonly subscribersOf: (topic: string) => readonly { readonly agentId: string; readonly name: string }[];
}
