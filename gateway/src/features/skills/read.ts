/**
 * Skills for sessions: the list for the prompt, and the skills' texts. Returns only approved content: compares each file with the
 * approved digest, not with a cache. Asks the gateway for pins; must not write.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { PromptSkill } from "../../prompt/assemble.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import type { PromptInput } from "../../ports/prompt.ts";
import { failure, type Result } from "../../ports/result.ts";
import type { SeenSkill, SkillPin } from "../../ports/skills.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { isUsable, standing } from "./eligibility.ts";
import { SKILL_FILE, type SkillFolder, skillPath } from "../../storage/skills/folder.ts";
import { createSkillLibrary, type SkillLibrary, type SkillView } from "./library.ts";
import { approvalOf, unreported } from "./pins.ts";

export type SeenPort = Pick<GatewayPort, "skillsSeen">;
/** The text for the model about a skill that it must not use. */
export const notApproved = (name: string) =>
  failure(
    "skill.changed",
    `The files of the skill \`${name}\` are not approved: something other than your human wrote or changed them. Don't use it. Your human can review it with \`gsv skills show ${name}\` and then run \`gsv skills approve ${name}\`.`,
  );

/** The text of a skill's file for a session, by its workspace path; undefined when the path is not in a skill. */
export const readSkillFile = (bucket: Bucket, gateway: SeenPort, agentId: string, path: string, now: number) =>
  approvedFile(bucket, gateway, agentId, path, now, "text");
/** The same for any kind of file. */
export const readSkillBytes = (bucket: Bucket, gateway: SeenPort, agentId: string, path: string, now: number) =>
  approvedFile(bucket, gateway, agentId, path, now, "bytes");

type Contents = { readonly text: string; readonly bytes: Uint8Array<ArrayBuffer> };
/** The only way for sessions to read skills. */
async function approvedFile<As extends keyof Contents>(
  bucket: Bucket,
  gateway: SeenPort,
  agentId: string,
  path: string,
  now: number,
  as: As,
): Promise<Result<Contents[As]> | undefined> {
  const asked = skillPath(path);
  const none = (): Result<never> => failure("path.not_found", `There is no file \`${path}\` in the workspace.`);
  // A disk may ignore case, so only the exact spelling of a skill is accepted.
  if (asked === undefined) return /^skills\/./i.test(path.normalize("NFKC")) && !/^skills\/[^/]+$/.test(path) ? none() : undefined;
  const library = createSkillLibrary(bucket);
  const contents: { readonly [Kind in keyof Contents]: (folder: SkillFolder) => Promise<Result<Contents[Kind]>> } = {
    text: (folder) => library.text(agentId, folder, asked.file),
    bytes: (folder) => library.bytes(agentId, folder, asked.file),
  };
  for (const fresh of [false, true]) {
    const view = await library.view(agentId, now, fresh);
    if (!view.ok) return view;
    const folder = view.value.folders.find(({ name }) => name === asked.name);
    if (folder === undefined || folder.scope === "builtin") {
      // An unknown skill may be new: compare with the bucket.
      if (!fresh) continue;
      return folder === undefined ? none() : contents[as](folder);
    }
    if (folder.sha256 === undefined) {
      if (!fresh) continue;
      return failure(
        "skill.invalid",
        `The skill \`${asked.name}\` can't be used: ${folder.problems[0] ?? "its files can't be read"} See \`gsv skills status ${asked.name}\`.`,
      );
    }
    const pins = await gateway.skillsSeen(agentId, [{ scope: folder.scope, name: folder.name, sha256: folder.sha256 }]);
    if (approvalOf(folder, pins) !== "approved") {
      if (!fresh) continue;
      return notApproved(asked.name);
    }
    const read = await contents[as](folder);
    if (read.ok || fresh) return !read.ok && read.error.reason === "skill.changed" ? notApproved(asked.name) : read;
  }
  return none();
}

/** The skills of the prompt; the same object while nothing has changed. */
export class PromptSkills {
  readonly #library: SkillLibrary;
  readonly #gateway: SeenPort;
  /** The pins of the last full comparison with the bucket; remaining differences are real. */
  #comparedFor: readonly SkillPin[] | undefined;
  #reported: { readonly from: readonly SkillPin[] | undefined; readonly pins: readonly SkillPin[]; readonly what: string } | undefined;
  #toldOf: string | undefined;
  #made: { readonly key: readonly unknown[]; readonly skills: readonly PromptSkill[] } | undefined;

  constructor(bucket: Bucket, gateway: SeenPort) {
    this.#library = createSkillLibrary(bucket);
    this.#gateway = gateway;
  }

  async list(input: PromptInput): Promise<Result<readonly PromptSkill[]>> {
    const { agentId } = input.identity;
    let view = await this.#library.view(agentId, input.now);
    if (!view.ok) return view;
    let pins = await this.#pins(agentId, view.value, input.skillPins);
    const wrong = view.value.folders.some((folder) => approvalOf(folder, pins) === "changed");
    const looked = Math.min(view.value.own.checkedAt, view.value.global.checkedAt) === input.now;
    if (wrong && !looked && this.#comparedFor !== pins) {
      // The pins may be newer than the cached files, after an approval or a change in another isolate.
      view = await this.#library.view(agentId, input.now, true);
      if (!view.ok) return view;
      pins = await this.#pins(agentId, view.value, input.skillPins);
    }
    this.#comparedFor = pins;
    await this.#tellChanged(agentId, view.value, pins);
    const key = [view.value.own.skills, view.value.global.skills, JSON.stringify(pins), input.nodes, input.config];
    if (this.#made === undefined || key.some((part, index) => part !== this.#made?.key[index]))
      this.#made = { key, skills: offered(view.value.folders, pins, input) };
    return { ok: true, value: this.#made.skills };
  }

  /** Tells the gateway of skills that differ from their approval, once per finding. */
  async #tellChanged(agentId: string, { folders }: SkillView, pins: readonly SkillPin[]): Promise<void> {
    const changed = folders.flatMap((folder): readonly SeenSkill[] => {
      const { scope, name, sha256 } = folder;
      if (scope === "builtin" || sha256 === undefined || approvalOf(folder, pins) === "approved") return [];
      return [{ scope, name, sha256, changed: true }];
    });
    const what = JSON.stringify([agentId, changed]);
    if (changed.length === 0 || what === this.#toldOf) return;
    const told = await this.#gateway.skillsSeen(agentId, changed.slice(0, LIMITS.skills)).catch(() => undefined);
    if (told !== undefined) this.#toldOf = what;
  }
  /** Asks the gateway about skills without a pin, once per finding: the pins of the run may be older than an installation. */
  async #pins(agentId: string, view: SkillView, given: readonly SkillPin[] | undefined): Promise<readonly SkillPin[]> {
    const known = this.#reported?.from === given ? this.#reported : undefined;
    const pins = known?.pins ?? given ?? [];
    const news = unreported(view.folders, pins);
    const what = JSON.stringify(news);
    if (given !== undefined && (news.length === 0 || known?.what === what)) return pins;
    const fresh = await this.#gateway.skillsSeen(agentId, news.slice(0, 2 * LIMITS.skills)).catch(() => undefined);
    if (fresh === undefined) return pins;
    this.#reported = { from: given, pins: fresh, what };
    return fresh;
  }
}

function offered(folders: readonly SkillFolder[], pins: readonly SkillPin[], input: PromptInput): readonly PromptSkill[] {
  const entries = input.config.skills?.entries ?? {};
  return folders.flatMap((folder) => {
    const { name, head, problems } = folder;
    const entry = Object.hasOwn(entries, name) ? entries[name] : undefined;
    const { state } = standing({ name, head, problems, approval: approvalOf(folder, pins) }, entry, input.nodes);
    const programs = state === "unchecked" ? { programs: head.bins } : {};
    return isUsable(state) ? [{ name, description: head.description, location: `skills/${name}/${SKILL_FILE}`, ...programs }] : [];
  });
}
