/**
 * An agent's folder: reports which of the prompt's files exist, and creates the default ones for a new agent. Must not overwrite
 * files.
 */
import { type Result, storageFailed } from "../../ports/result.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { DEFINITION_FILE } from "../../storage/workspace/protection.ts";
import { hasHistory, PROMPT_FILES } from "../../storage/workspace/cache.ts";
import { makeDefaults } from "./defaults.ts";
import { agentFolder, MARKER } from "../../storage/keys.ts";

export interface AgentFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly updatedAt: number;
}
export interface AgentFolder {
  /** The prompt's files, by name. */
  readonly files: readonly AgentFile[];
  /** False while BOOTSTRAP.md exists or the default files are still to be made, that is before the end of the first meeting. */
  readonly commissioned: boolean;
  /** agent.yaml, whether or not it is in force. */
  readonly definition?: AgentFile;
}
export interface AgentFilesStore {
  look(agentId: string): Promise<Result<AgentFolder>>;
  /**
   * Creates the missing default files. `bootstrap`: include the first meeting, unless the agent has IDENTITY.md or SOUL.md
   * already. Safe to repeat.
   */
  make(agentId: string, bootstrap: boolean): Promise<Result<void>>;
}

const NAMES: ReadonlySet<string> = new Set(PROMPT_FILES);
const MAX_DAYS = 64;

export function createAgentFiles(bucket: Bucket): AgentFilesStore {
  const look = async (agentId: string): Promise<Result<AgentFolder>> => {
    const prefix = agentFolder(agentId);
    const shown = ({ key, size, uploaded }: { key: string; size: number; uploaded: Date }): AgentFile => ({
      path: key.slice(prefix.length),
      sizeBytes: size,
      updatedAt: uploaded.getTime(),
    });
    try {
      const [top, days] = await Promise.all([
        bucket.list({ prefix, delimiter: "/" }),
        // Names are dates, so the newest is last.
        bucket.list({ prefix: `${prefix}memory/`, delimiter: "/" }),
      ]);
      const found = [
        ...top.objects.filter(({ key }) => NAMES.has(key.slice(prefix.length))),
        ...days.objects.filter(({ key }) => /\/memory\/\d{4}-\d\d-\d\d\.md$/.test(key)).slice(-MAX_DAYS),
      ];
      const bootstrap = top.objects.some(({ key, size }) => key === `${prefix}BOOTSTRAP.md` && size > 0);
      const definition = top.objects.find(({ key, size }) => key === `${prefix}${DEFINITION_FILE}` && size > 0);
      const names = [...top.objects.map(({ key }) => key), ...top.delimitedPrefixes].map((key) => key.slice(prefix.length));
      const begun = hasHistory(names) || names.includes(MARKER) || definition !== undefined;
      return {
        ok: true,
        value: {
          files: found.map(shown),
          commissioned: !bootstrap && begun,
          ...(definition === undefined ? {} : { definition: shown(definition) }),
        },
      };
    } catch {
      return storageFailed("The agent's files could not be listed.");
    }
  };
  return {
    look,
    async make(agentId, bootstrap) {
      const before = await look(agentId);
      if (!before.ok) return before;
      const known = before.value.files.some(({ path }) => path === "IDENTITY.md" || path === "SOUL.md");
      return makeDefaults(bucket, agentId, bootstrap && !known);
    },
  };
}
