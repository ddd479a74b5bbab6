/** The part of the pack that is loaded when it is on. */
import type { PackContent } from "../../src/packs/pack.ts";
import { AGENTS } from "./gen/agents.ts";
import { TOOLS } from "./tools.ts";
import { TOPICS } from "./topics.ts";

export const content: PackContent = { agents: AGENTS, tools: TOOLS, topics: TOPICS };
