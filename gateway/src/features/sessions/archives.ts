/** `archives.list` and `archives.read`: the transcripts that resets have stored. Changes no archive. */
import { succeed } from "../../ports/result.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asSessionKey } from "../../../../protocol/gen/types.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { keyedSession, namedSession } from "../../kernel/naming.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { ArchiveInfo, ArchiveReader } from "../../storage/archive-reader.ts";

export interface ArchivePorts extends Pick<KernelPorts, "config">, SessionsPort {
  readonly archives: ArchiveReader;
}

export function archiveMethods({ config, sessions, ask, archives }: ArchivePorts): Handlers {
  /** A key in an object's metadata is shown only when it is valid. */
  const entry = ({ sessionKey, ...rest }: ArchiveInfo) => {
    const known = sessionKey === undefined ? undefined : keyedSession(config, sessionKey);
    return { ...rest, ...(known?.ok === true ? { sessionKey: asSessionKey(known.value.key) } : {}) };
  };
  /** The ids that the session has had, by which an archive without metadata is found. */
  const incarnations = async (key: string): Promise<ReadonlySet<string>> => {
    if (sessions.find(key) === undefined) return new Set();
    const history = await ask(key, (session) => session.history());
    return new Set(history.ok ? [history.value.currentSessionId, ...history.value.previousSessionIds] : []);
  };

  return {
    "archives.list": async (_caller, { agentId, sessionKey, offset, limit }) => {
      const asked = sessionKey === undefined ? undefined : namedSession(config, sessionKey);
      if (asked && !asked.ok) return asked;
      const agent = agentId ?? asked?.value.address.agentId ?? config.defaultAgentId();
      const listed = await archives.list(agent);
      if (!listed.ok) return listed;
      let found = listed.value;
      if (asked) {
        const { key } = asked.value;
        const ids = await incarnations(key);
        found = found.filter((archive) => (archive.sessionKey === undefined ? ids.has(archive.sessionId) : archive.sessionKey === key));
      }
      const from = offset ?? 0;
      return succeed({ archives: found.slice(from, from + (limit ?? LIMITS.pageItems)).map(entry), count: found.length });
    },
    "archives.read": async (_caller, { agentId, path, offset, limit }) => {
      const page = await archives.page(agentId ?? config.defaultAgentId(), path, {
        ...(offset === undefined ? {} : { offset }),
        ...(limit === undefined ? {} : { limit }),
      });
      return page.ok ? succeed({ ...page.value, archive: entry(page.value.archive) }) : page;
    },
  };
}
