/** Jobs keep the time zone that they were made with (rule SC3): a change of the owner's zone names those that have another. PURE. */
import type { Job } from "./job.ts";

const NAMED = 3;

export function otherZones(jobs: readonly Pick<Job, "id" | "body">[], zone: string): readonly string[] {
  const others = jobs.flatMap(({ id, body: { schedule } }) =>
    schedule.kind === "cron" && zoneId(schedule.tz) !== zoneId(zone) ? [{ id, expr: schedule.expr, tz: schedule.tz }] : [],
  );
  const [first] = others;
  if (first === undefined) return [];
  const named = others.slice(0, NAMED).map(({ id, tz }) => `${id} (${tz})`);
  const more = others.length > NAMED ? ` and ${others.length - NAMED} more` : "";
  const who = others.length === 1 ? "1 job keeps its time zone" : `${others.length} jobs keep their time zones`;
  return [`${who}: ${named.join(", ")}${more}. To change one: \`gsv cron edit ${first.id} --cron "${first.expr}" --tz ${zone}\`.`];
}

/** Not every runtime makes one name of these. */
const UTC = /^(?:Etc\/)?(?:UTC|UCT|Universal|Zulu)$/i;

/** The one name of a zone that has several. */
function zoneId(zone: string): string {
  if (UTC.test(zone)) return "UTC";
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    return zone; // A zone that this runtime does not know.
  }
}
