/** `archives.*`: transcripts that were put away. Reading and its checks are in `workspace/archive-reader.ts`. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asSessionKey } from "../../../../protocol/gen/types.ts";
import type { ArchiveInfo } from "../../storage/archive-reader.ts";
import { succeed } from "../../kernel/outcome.ts";
import type { Handler, Handlers, Services } from "../../app/services.ts";
import { conversation } from "./session-key.ts";

/** What stands in an object's metadata is shown as a key only when it is one. */
function entry(services: Services, { sessionKey, ...rest }: ArchiveInfo) {
  const known = sessionKey === undefined ? undefined : conversation(services, sessionKey);
  return { ...rest, ...(known?.ok === true ? { sessionKey: asSessionKey(known.value.key) } : {}) };
}
/** The conversation's incarnations: an archive whose metadata was lost is still its own. */
async function sessionIds(services: Services, key: string): Promise<ReadonlySet<string>> {
  if (services.sessions.find(key) === undefined) return new Set();
  const history = await services.ask(key, (session) => session.history());
  return new Set(history.ok ? [history.value.currentSessionId, ...history.value.previousSessionIds] : []);
}

const list: Handler<"archives.list"> = async (services, _caller, { agentId, sessionKey, offset, limit }) => {
  const asked = sessionKey === undefined ? undefined : conversation(services, sessionKey);
  if (asked && !asked.ok) return asked;
  const agent = agentId ?? asked?.value.address.agentId ?? services.config.defaultAgentId();
  const listed = await services.archives.list(agent);
  if (!listed.ok) return listed;
  let found = listed.value;
  if (asked) {
    const { key } = asked.value;
    const ids = await sessionIds(services, key);
    found = found.filter((archive) => (archive.sessionKey === undefined ? ids.has(archive.sessionId) : archive.sessionKey === key));
  }
  const from = offset ?? 0;
  return succeed({
    archives: found.slice(from, from + (limit ?? LIMITS.pageItems)).map((archive) => entry(services, archive)),
    count: found.length,
  });
};

const read: Handler<"archives.read"> = async (services, _caller, { agentId, path, offset, limit }) => {
  const page = await services.archives.page(agentId ?? services.config.defaultAgentId(), path, {
    ...(offset === undefined ? {} : { offset }),
    ...(limit === undefined ? {} : { limit }),
  });
  return page.ok ? succeed({ ...page.value, archive: entry(services, page.value.archive) }) : page;
};

export const archiveMethods = { "archives.list": list, "archives.read": read } as const satisfies Handlers;
