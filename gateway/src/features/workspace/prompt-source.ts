/** The system prompt of an agent: its files through the cache, put together by prompt/. Makes a new agent's files first. */
import { type PromptFiles, type PromptSkill, assemble } from "../../prompt/assemble.ts";
import { localDay } from "../../prompt/dates.ts";
import type { AssembledPrompt, PromptInput, PromptSource } from "../../ports/prompt.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { type AgentFiles, cacheOf, type PromptFileName } from "./cache.ts";
import { ensureDefaults } from "../agents/defaults.ts";
import { PromptSkills, type SeenPort } from "../skills/read.ts";

const FIELDS: Readonly<Record<PromptFileName, keyof Omit<PromptFiles, "skills">>> = {
  "SOUL.md": "soul",
  "IDENTITY.md": "identity",
  "USER.md": "user",
  "AGENTS.md": "agents",
  "MEMORY.md": "memory",
  "TOOLS.md": "tools",
  "HEARTBEAT.md": "heartbeat",
  "BOOTSTRAP.md": "bootstrap",
};
function toPromptFiles({ files, today, yesterday }: AgentFiles): PromptFiles {
  const named = Object.fromEntries([...files].map(([name, file]) => [FIELDS[name], file]));
  return { ...named, ...(today ? { today } : {}), ...(yesterday ? { yesterday } : {}) };
}

interface Made {
  readonly loaded: AgentFiles;
  readonly skills: readonly PromptSkill[];
  readonly day: string;
  readonly input: PromptInput;
  readonly prompt: AssembledPrompt;
}
/** Whether the same prompt would come out: everything that goes in but the time of the day, which it never shows. */
function isSame(made: Made, loaded: AgentFiles, skills: readonly PromptSkill[], day: string, input: PromptInput): boolean {
  const before = made.input;
  return (
    made.loaded === loaded &&
    made.skills === skills &&
    made.day === day &&
    before.identity === input.identity &&
    before.config === input.config &&
    before.agent === input.agent &&
    before.nodes === input.nodes &&
    before.model.provider === input.model.provider &&
    before.model.id === input.model.id &&
    before.systemPromptOverride === input.systemPromptOverride &&
    before.tools.length === input.tools.length &&
    before.tools.every((tool, index) => tool === input.tools[index])
  );
}

export function createPromptSource(bucket: Bucket, gateway: SeenPort): PromptSource {
  const cache = cacheOf(bucket);
  const skills = new PromptSkills(bucket, gateway);
  let made: Made | undefined;
  return {
    async assemble(input) {
      const { agentId } = input.identity;
      const day = localDay(input.now, input.config.userTimezone);
      let [loaded, listed] = await Promise.all([cache.load(agentId, day, input.now), skills.list(input)]);
      if (!listed.ok) return listed;
      if (!loaded.ok) return loaded;
      const ensured = await ensureDefaults(bucket, agentId, loaded.value);
      if (!ensured.ok) return ensured;
      if (ensured.value) loaded = await cache.load(agentId, day, input.now);
      if (!loaded.ok) return loaded;
      if (made === undefined || !isSame(made, loaded.value, listed.value, day.today, input))
        made = {
          loaded: loaded.value,
          skills: listed.value,
          day: day.today,
          input,
          prompt: assemble({ ...toPromptFiles(loaded.value), skills: listed.value }, input),
        };
      return { ok: true, value: made.prompt };
    },
  };
}
