/** Builds an agent's system prompt: creates a new agent's default files, loads its files through the cache, lets prompt/ assemble them. */
import { type PromptFiles, type PromptSkill, assemble } from "../../prompt/assemble.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import { localDay } from "../../prompt/dates.ts";
import type { AssembledPrompt, PromptInput, PromptSource } from "../../ports/prompt.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { type AgentFiles, cacheOf, type PromptFileName } from "../../storage/workspace/cache.ts";
import type { Result } from "../../ports/result.ts";

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
function toPromptFiles({ files, today, yesterday }: AgentFiles): Omit<PromptFiles, "skills"> {
  const named = Object.fromEntries([...files].map(([name, file]) => [FIELDS[name], file]));
  return { ...named, ...(today ? { today } : {}), ...(yesterday ? { yesterday } : {}) };
}

/** The owner commissions an agent in a conversation: not in a task or a job, in which no one answers, and not an agent that a pack brings. */
function filesFor({ identity, defined }: PromptInput, loaded: AgentFiles): Omit<PromptFiles, "skills"> {
  const { bootstrap, ...others } = toPromptFiles(loaded);
  // Which name the main conversation has makes no difference here.
  const named = canonicalKey(identity.key, "main");
  const isUnattended = named.ok && (named.address.form === "task" || named.address.form === "cron");
  return isUnattended || defined?.isOfPack === true || bootstrap === undefined ? others : { ...others, bootstrap };
}

interface Made {
  readonly loaded: AgentFiles;
  readonly skills: readonly PromptSkill[];
  readonly day: string;
  readonly input: PromptInput;
  readonly prompt: AssembledPrompt;
}
/** Whether the prompt would be the same. The time of day is not compared: the prompt never shows it. */
function isSame(made: Made, loaded: AgentFiles, skills: readonly PromptSkill[], day: string, input: PromptInput): boolean {
  const before = made.input;
  return (
    made.loaded === loaded &&
    made.skills === skills &&
    made.day === day &&
    before.identity === input.identity &&
    before.config === input.config &&
    before.agent === input.agent &&
    before.defined === input.defined &&
    before.nodes === input.nodes &&
    before.model.provider === input.model.provider &&
    before.model.id === input.model.id &&
    before.systemPromptOverride === input.systemPromptOverride &&
    before.tools.length === input.tools.length &&
    before.tools.every((tool, index) => tool === input.tools[index])
  );
}

/** What other features add to the prompt. */
export interface PromptSourcePorts {
  readonly skills: { list(input: PromptInput): Promise<Result<readonly PromptSkill[]>> };
  /** Makes the default files of a new agent. True: files were made, so they must be loaded again. */
  readonly ensureDefaults: (agentId: string, files: AgentFiles) => Promise<Result<boolean>>;
}

const NOTHING_MADE: Result<boolean> = { ok: true, value: false };

export function createPromptSource(bucket: Bucket, { skills, ensureDefaults }: PromptSourcePorts): PromptSource {
  const cache = cacheOf(bucket);
  let made: Made | undefined;
  return {
    async assemble(input) {
      const { agentId } = input.identity;
      const day = localDay(input.now, input.config.userTimezone);
      let [loaded, listed] = await Promise.all([cache.load(agentId, day, input.now), skills.list(input)]);
      if (!listed.ok) return listed;
      if (!loaded.ok) return loaded;
      // A definition says what the agent is, so its agent gets no default files.
      const ensured = input.defined === undefined ? await ensureDefaults(agentId, loaded.value) : NOTHING_MADE;
      if (!ensured.ok) return ensured;
      if (ensured.value) loaded = await cache.load(agentId, day, input.now);
      if (!loaded.ok) return loaded;
      if (made === undefined || !isSame(made, loaded.value, listed.value, day.today, input))
        made = {
          loaded: loaded.value,
          skills: listed.value,
          day: day.today,
          input,
          prompt: assemble({ ...filesFor(input, loaded.value), skills: listed.value }, input),
        };
      return { ok: true, value: made.prompt };
    },
  };
}
