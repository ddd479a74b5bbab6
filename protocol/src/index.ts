/** The whole contract. Importing this file fills the registries of dsl.ts. */
import "./limits.ts";
import "./errors.ts";
import "./ids.ts";
import "./frames.ts";
import "./tool.ts";
import "./policy.ts";
import "./connect.ts";
import "./chat.ts";
import "./model.ts";
import "./session.ts";
import "./node.ts";
import "./approval.ts";
import "./log.ts";
import "./config.ts";
import "./workspace.ts";
import "./memory.ts";
import "./archive.ts";
import "./agent.ts";
import "./search.ts";
import "./token.ts";
import "./audit.ts";
import "./why.ts";
import "./channel.ts";
import "./pairing.ts";
import "./heartbeat.ts";
import "./cron.ts";
import "./hook.ts";
import "./skill.ts";
import "./transfer.ts";
import "./spend.ts";
import "./stop.ts";
import "./undo.ts";
import "./health.ts";

export { errors, events, limits, lookups, methods, services, types } from "./dsl.ts";
export { CONFIG_DEFAULTS, SECRET_PATHS } from "./config.ts";
/** Types that need a validator although they are neither params nor payloads. */
export const VALIDATED = ["Frame", "GsvConfig", "SkillFrontMatter"] as const;
