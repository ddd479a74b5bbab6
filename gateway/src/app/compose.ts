/**
 * Where the gateway's parts come from: the only file of this folder that knows who implements a port, and the one place where tests put
 * something else.
 */
import type { ChannelService } from "../../../protocol/gen/services.ts";
import { channelNames, channelService, type Env } from "../platform/env.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { SearchPort } from "../ports/search.ts";
import type { SessionPort } from "../ports/session.ts";
import { createSkillLibrary, type SkillLibrary } from "../features/skills/library.ts";
import { createNativeTools } from "../tools/native-tools.ts";
import { type AgentFilesStore, createAgentFiles } from "../features/agents/files.ts";
import { type ArchiveReader, createArchiveReader } from "../storage/archive-reader.ts";
import { createWorkspaceStore, type WorkspaceStore } from "../features/workspace/store.ts";

export interface Parts {
  /** The Worker of a channel, when one is bound as `CHANNEL_{NAME}`. */
  channel(env: Env, name: string): ChannelService | undefined;
  channelNames(env: Env): readonly string[];
  /** A session by its canonical key. */
  session(env: Env, key: string): SessionPort;
  /** An agent's search index. */
  search(env: Env, agentId: string): SearchPort;
  nativeTools(env: Env): NativeTools;
  workspace(env: Env): WorkspaceStore;
  archives(env: Env): ArchiveReader;
  agentFiles(env: Env): AgentFilesStore;
  skills(env: Env): SkillLibrary;
}

export const parts: Parts = {
  channel: channelService,
  channelNames,
  session: (env, key) => env.SESSION.getByName(key),
  search: (env, agentId) => env.SEARCH.getByName(agentId),
  nativeTools: (env) => createNativeTools(env.STORAGE),
  workspace: (env) => createWorkspaceStore(env.STORAGE),
  archives: (env) => createArchiveReader(env.STORAGE),
  agentFiles: (env) => createAgentFiles(env.STORAGE),
  skills: (env) => createSkillLibrary(env.STORAGE),
};
