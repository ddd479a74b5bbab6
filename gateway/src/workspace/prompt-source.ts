/** The system prompt of an agent: its files through the cache, put together by prompt/. Makes a new agent's files first. */
import { type PromptFiles, assemble } from "../prompt/assemble.ts";
import { localDay } from "../prompt/dates.ts";
import type { PromptSource } from "../ports.ts";
import type { Bucket } from "./bucket.ts";
import { type AgentFiles, cacheOf, type PromptFileName } from "./cache.ts";
import { ensureDefaults } from "./defaults.ts";

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

export function createPromptSource(bucket: Bucket): PromptSource {
  const cache = cacheOf(bucket);
  return {
    async assemble(input) {
      const { agentId } = input.identity;
      const day = localDay(input.now, input.config.userTimezone);
      let loaded = await cache.load(agentId, day, input.now);
      if (!loaded.ok) return loaded;
      const made = await ensureDefaults(bucket, agentId, loaded.value);
      if (!made.ok) return made;
      if (made.value) loaded = await cache.load(agentId, day, input.now);
      return loaded.ok ? { ok: true, value: assemble(toPromptFiles(loaded.value), input) } : loaded;
    },
  };
}
