/**
 * The gateway's skills: lists them with their approvals and problems, installs, removes and approves them. No other module approves.
 * Files that the gateway did not write for the owner are never approved as they are found: the owner approves them (promises S10, TH14).
 * Failures are values; changes are audited.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { SkillEntry, SkillFile, SkillsReport, SkillUploadedFile } from "../../../../protocol/gen/types.ts";
import { asAgentId, asCapability } from "../../../../protocol/gen/types.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { SeenSkill, SkillWriting } from "../../ports/skills.ts";
import { isUsable, standing } from "./eligibility.ts";
import {
  digestOf,
  digestsOf,
  isSkillName,
  NAME_RULE,
  NO_FILES,
  sha256Of,
  SKILL_FILE,
  type SkillFolder,
  skillPath,
} from "../../storage/skills/folder.ts";
import { folded, type NewFile, type Refused, refusedContents, refusedNames } from "../../storage/skills/new-files.ts";
import { decodeBase64 } from "../../storage/base64.ts";
import { visible } from "../../prompt/hidden.ts";
import type { SkillLibrary, SkillView } from "./library.ts";
import type { SkillRoot } from "../../storage/skills/load.ts";
import { approvalOf, pinOf, unreported } from "./pins.ts";
import { KeyedLock } from "../../storage/keyed-lock.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import { ownerOf, type PinRecord, type SkillPins } from "./pin-store.ts";
import { MAX_CHUNKS, type SkillUploads } from "./upload-store.ts";

export interface SkillServicePorts extends NodesPort, NotifyPort, Pick<KernelPorts, "arm" | "audit" | "config" | "now"> {
  readonly library: SkillLibrary;
  readonly pins: SkillPins;
  readonly uploads: SkillUploads;
}
/** Maximum number of entries of one report. */
const MAX_ENTRIES = 1000;
const SHORT_CHARS = 1024;
/** Well below the size of a frame. Later entries are shortened to name, state and first reason. */
const REPORT_CHARS = 500_000;
const MAX_NODES = 256;
const utf8 = new TextEncoder();
/** A skill to install: texts of the request itself, and files of an upload by their place in its bytes. */
export interface GivenSkill {
  readonly files: readonly SkillFile[];
  readonly uploadId?: string;
  readonly uploaded: readonly SkillUploadedFile[];
  readonly replace: boolean;
}
const refusedSkill = ({ reason, problems }: Refused) => fail(reason, `The skill can't be installed: ${problems.join(" ")}`);
/** The failure for an unknown name. */
const noSkill = (name: string) =>
  fail("skill.not_found", `There is no skill \`${visible(name, 64)}\`.`, "List the skills: `gsv skills list`.");

export class SkillService {
  readonly #ports: SkillServicePorts;
  readonly #locks = new KeyedLock();

  constructor(ports: SkillServicePorts) {
    this.#ports = ports;
  }

  /** Serialises changes, because comparing, approving and writing belong together. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#locks.run("", work);
  }
  /** Serialises the clients' writes to one skill, because each announces the digest of the whole skill. */
  whileWriting<T>(agentId: string, path: string, work: () => Promise<T>): Promise<T> {
    const asked = skillPath(path.replace(/^\.\//, ""));
    return asked === undefined ? work() : this.#locks.run(`${agentId}/${asked.name}`, work);
  }

  // ---------------------------------------------------------------- reading

  async report(agentId: string, fresh: boolean): Promise<Result<SkillsReport>> {
    const now = this.#ports.now();
    const view = await this.#view(agentId, fresh);
    if (!view.ok) return view;
    const pins = this.#ports.pins.list(agentId);
    const nodes = this.#ports.nodes.list();
    return succeed({
      agentId: asAgentId(agentId),
      refreshedAt: now,
      nodes: nodes.slice(0, MAX_NODES).map(({ nodeId, online, hostCapabilities }) => ({ nodeId, online, hostCapabilities })),
      skills: withinFrame(view.value.folders.slice(0, MAX_ENTRIES).map((folder) => this.#entry(agentId, folder, pins))),
    });
  }

  async show(agentId: string, name: string): Promise<Result<{ skill: SkillEntry; content: string; files: string[] }>> {
    const found = await this.#find(agentId, name);
    if (!found.ok) return found;
    const { folder } = found.value;
    const exact = folder.sha256 === undefined ? undefined : await this.#ports.library.text(agentId, folder, SKILL_FILE);
    const text = exact?.ok === true ? exact : await this.#ports.library.anyText(agentId, folder);
    if (!text.ok) return text;
    const files = folder.scope === "builtin" ? [SKILL_FILE] : folder.files.map(({ path }) => visible(path, 1024)).toSorted();
    return succeed({
      skill: this.#entry(agentId, folder, this.#ports.pins.list(agentId)),
      content: text.value,
      files: files.slice(0, 256),
    });
  }

  // ---------------------------------------------------------------- changing

  /** Keeps a chunk of a skill that does not fit one frame. */
  upload(uploadId: string, index: number, content: string): Result<{ receivedBytes: number; expiresAt: number }> {
    const bytes = content.length > 2 * LIMITS.skillChunkBytes ? undefined : decodeBase64(content);
    if (bytes === undefined || bytes.length === 0 || bytes.length > LIMITS.skillChunkBytes || index >= MAX_CHUNKS)
      return fail(
        "protocol.invalid_params",
        `A chunk has 1 to ${LIMITS.skillChunkBytes} bytes in base64, and an index below ${MAX_CHUNKS}.`,
        "Split the files into chunks of that size.",
      );
    const { uploads, now, arm } = this.#ports;
    const added = uploads.add(uploadId, index, bytes, now());
    arm();
    return added === undefined ? fail("skill.too_many_uploads") : succeed(added);
  }

  install(agentId: string, scope: "agent" | "global", name: string, given: GivenSkill, by: string): Promise<Result<{ skill: SkillEntry }>> {
    return this.#exclusively(async () => {
      const { library, pins, uploads, now } = this.#ports;
      const { uploadId } = given;
      const inline = given.files.map(({ path, content }) => ({ path, content, bytes: new Uint8Array(utf8.encode(content)) }));
      const sizes = [...inline.map(({ path, bytes }) => ({ path, sizeBytes: bytes.length })), ...given.uploaded];
      const names = refusedNames(name, sizes);
      if (names !== undefined) return refusedSkill(names);
      const notText = inline.find(({ content }) => content.includes("\0") || !content.isWellFormed());
      if (notText !== undefined)
        return refusedSkill({
          reason: "skill.invalid",
          problems: [`\`${visible(notText.path, 128)}\` is not text; send it with \`skills.upload\`.`],
        });
      const digests = new Map<string, string>(given.uploaded.map(({ path, sha256 }) => [path, sha256]));
      for (const { path, bytes } of inline) digests.set(path, await sha256Of(bytes));
      const sha256 = await digestOf(digests);
      const root: SkillRoot = scope === "agent" ? { scope, agentId } : { scope };
      const mark = JSON.stringify([scope, scope === "agent" ? agentId : "", name, sha256]);
      if (uploadId !== undefined && uploads.installed(uploadId, now()) === mark) return this.#done(agentId, root, name, sha256);
      const files = await this.#received(given, inline);
      if (!files.ok) return files;
      const contents = await refusedContents(files.value);
      if (contents !== undefined) return refusedSkill(contents);
      const there = await library.root(root, now());
      if (!there.ok) return there;
      const old = there.value.skills.find((skill) => skill.name === name);
      const other = there.value.skills.find((skill) => skill.name !== name && folded(skill.name) === folded(name));
      if (other !== undefined)
        return refusedSkill({
          reason: "skill.invalid",
          problems: [
            `There is a skill \`${visible(other.name, 128)}\`, and disks may take both names for the same folder. Use exactly that name, or remove it first with \`gsv skills remove ${visible(other.name, 128)}\`.`,
          ],
        });
      if (old !== undefined && !given.replace) return fail("skill.exists", `The skill \`${name}\` already exists.`);
      if (old === undefined && there.value.skills.length >= LIMITS.skills) return fail("skill.limit");
      const owner = ownerOf(scope, agentId);
      // The new digest is approved before the write, and the old one stays approved until then. Partial states are not approved.
      if (old === undefined || !pins.allow(owner, name, old.sha256 ?? "", sha256, by, now())) pins.approve(owner, name, sha256, by, now());
      const put = await library.put(root, name, files.value, by);
      if (!put.ok) return put;
      pins.approve(owner, name, sha256, by, now());
      const done = await this.#done(agentId, root, name, sha256);
      if (done.ok && uploadId !== undefined) uploads.done(uploadId, mark);
      return done;
    });
  }

  /** The bytes of every file. Each uploaded file must be what its sender announced. */
  async #received({ uploadId, uploaded }: GivenSkill, inline: readonly NewFile[]): Promise<Result<readonly NewFile[]>> {
    if (uploaded.length === 0) return succeed(inline);
    const bytes = uploadId === undefined ? undefined : this.#ports.uploads.bytes(uploadId, this.#ports.now());
    if (bytes === undefined) return fail("skill.upload_lost");
    const files = [...inline];
    for (const { path, offset, sizeBytes, sha256 } of uploaded) {
      const part = bytes.subarray(offset, offset + sizeBytes);
      if (part.length !== sizeBytes || (await sha256Of(part)) !== sha256)
        return fail("skill.upload_lost", `\`${visible(path, 128)}\` did not arrive as it was announced.`);
      files.push({ path, bytes: part });
    }
    return succeed(files);
  }

  async #done(agentId: string, root: SkillRoot, name: string, sha256: string): Promise<Result<{ skill: SkillEntry }>> {
    const there = await this.#ports.library.root(root, this.#ports.now());
    if (!there.ok) return there;
    const folder = there.value.skills.find((skill) => skill.name === name);
    if (folder?.sha256 !== sha256) return fail("storage.failed", `The skill \`${name}\` was not stored completely.`, "Try again.");
    return succeed({ skill: this.#entry(agentId, folder, this.#ports.pins.list(agentId)) });
  }

  remove(
    agentId: string,
    name: string,
    scope: "agent" | "global" | "builtin" | undefined,
  ): Promise<Result<{ removed: true; scope: "agent" | "global" }>> {
    return this.#exclusively(async () => {
      if (scope === "builtin") return fail("skill.builtin");
      const view = await this.#ports.library.view(agentId, this.#ports.now(), true);
      if (!view.ok) return view;
      const { own, global, folders } = view.value;
      const has = (skills: readonly SkillFolder[]): boolean => skills.some((skill) => skill.name === name);
      const from = scope ?? (has(own.skills) ? "agent" : "global");
      const owner = ownerOf(from, agentId);
      if (!has(from === "agent" ? own.skills : global.skills)) {
        // Remove the approval of a deleted skill too.
        if (this.#ports.pins.remove(owner, name)) return succeed({ removed: true, scope: from });
        if (folders.some((folder) => folder.name === name && folder.scope === "builtin")) return fail("skill.builtin");
        return noSkill(name);
      }
      const gone = await this.#ports.library.remove(from === "agent" ? { scope: from, agentId } : { scope: from }, name);
      if (!gone.ok) return gone;
      this.#ports.pins.remove(owner, name);
      return succeed({ removed: true, scope: from });
    });
  }

  approve(agentId: string, name: string, sha256: string, by: string): Promise<Result<{ skill: SkillEntry }>> {
    return this.#exclusively(async () => {
      const found = await this.#find(agentId, name);
      if (!found.ok) return found;
      const { folder } = found.value;
      const { pins, now } = this.#ports;
      if (folder.scope === "builtin") return succeed({ skill: this.#entry(agentId, folder, []) });
      const problems = [...folder.problems, ...folder.head.problems];
      if (folder.sha256 === undefined || problems.length > 0)
        return fail("skill.invalid", `The skill \`${name}\` can't be used, so it can't be approved: ${problems.join(" ")}`);
      if (folder.sha256 !== sha256) return fail("skill.changed");
      pins.approve(ownerOf(folder.scope, agentId), name, sha256, by, now());
      return succeed({ skill: this.#entry(agentId, folder, pins.list(agentId)) });
    });
  }

  /** Announces that a file of the agent's own skill will become `sha256`. Refuses `agent:` writers when the skill is not approved. */
  writing({ agentId, path, sha256, by }: SkillWriting): Promise<Result<void>> {
    return this.#exclusively(async () => {
      const done: Result<void> = { ok: true, value: undefined };
      const asked = skillPath(path);
      if (asked === undefined) return done;
      if (!isSkillName(asked.name)) return by.startsWith("agent:") ? fail("path.invalid", NAME_RULE) : done;
      const { library, pins, now, audit } = this.#ports;
      const there = await library.root({ scope: "agent", agentId }, now());
      if (!there.ok) return there;
      const folder = there.value.skills.find(({ name }) => name === asked.name);
      // With too many or too large files the skill is unusable for every writer.
      if (folder !== undefined && folder.sha256 === undefined) return done;
      const files = folder === undefined ? new Map(NO_FILES) : digestsOf(folder.files);
      const from = await digestOf(files);
      if (sha256 === undefined) files.delete(asked.file);
      else files.set(asked.file, sha256);
      const to = await digestOf(files);
      if (!pins.allow(agentId, asked.name, from, to, by, now()))
        return by.startsWith("agent:")
          ? fail(
              "skill.changed",
              `The skill \`${asked.name}\` is not the approved version, so it must not be changed now.`,
              `The owner can review it with \`gsv skills show ${asked.name}\` and then run \`gsv skills approve ${asked.name}\`.`,
            )
          : done;
      if (from !== to)
        audit.append({
          actor: by,
          action: "skill.written",
          target: `${agentId}/${asked.name}`,
          decision: "allowed",
          detail: `${asked.file.slice(0, 200)} ${to}`,
        });
      return done;
    });
  }

  /** Skills that a session found. Completes announced changes that have arrived; approves nothing else. */
  seen(agentId: string, skills: readonly SeenSkill[]): readonly PinRecord[] {
    const { pins, now } = this.#ports;
    const sound = skills.filter(({ name, sha256 }) => isSkillName(name) && /^[0-9a-f]{64}$/.test(sha256)).slice(0, 2 * LIMITS.skills);
    const news = sound.filter(({ changed }) => changed !== true);
    if (news.length > 0 || sound.length === 0) pins.seen(agentId, news, now());
    const known = pins.list(agentId);
    for (const skill of sound) if (skill.changed === true) this.#tellChanged(agentId, skill, known);
    return known;
  }
  #tellChanged(agentId: string, { scope, name, sha256 }: SeenSkill, known: readonly PinRecord[]): void {
    const pin = known.find((each) => each.scope === scope && each.name === name);
    if (pin?.sha256 === sha256 || pin?.next === sha256) return;
    const cause = `skill:${scope === "agent" ? agentId : ""}/${name}`;
    this.#ports.notify.tell({
      kind: "skill",
      key: `${cause}:${sha256}`,
      cause,
      agentId,
      text: `The skill \`${name}\` is new or has changed, and no run uses it until you approve it. Look at it: \`gsv skills status ${name}\`. Then approve it: \`gsv skills approve ${name}\`.`,
    });
  }

  // ---------------------------------------------------------------- parts

  async #view(agentId: string, fresh: boolean): Promise<Result<SkillView>> {
    const { library, pins, now } = this.#ports;
    let view = await library.view(agentId, now(), fresh);
    if (!view.ok) return view;
    const known = pins.list(agentId);
    // A session may have changed a skill in another isolate, so check the bucket before reporting a difference.
    if (!fresh && view.value.folders.some((folder) => approvalOf(folder, known) !== "approved"))
      view = await library.view(agentId, now(), true);
    if (view.ok) this.seen(agentId, unreported(view.value.folders, known));
    return view;
  }

  async #find(agentId: string, name: string): Promise<Result<{ folder: SkillFolder }>> {
    const view = await this.#view(agentId, true);
    if (!view.ok) return view;
    const folder = view.value.folders.find((skill) => skill.name === name);
    return folder === undefined ? noSkill(name) : succeed({ folder });
  }

  #entry(agentId: string, folder: SkillFolder, pins: readonly PinRecord[]): SkillEntry {
    const { name, scope, head, problems, sha256 } = folder;
    const entries = this.#ports.config.effective().skills?.entries ?? {};
    const pin = pinOf(folder, pins);
    const nodes = this.#ports.nodes.list();
    const own = standing(
      { name, head, problems, approval: approvalOf(folder, pins) },
      Object.hasOwn(entries, name) ? entries[name] : undefined,
      nodes,
    );
    const isNext = pin?.next !== undefined && pin.next === sha256;
    const approved = pin && {
      sha256: isNext ? pin.next : pin.sha256,
      at: (isNext ? pin.nextAt : undefined) ?? pin.approvedAt,
      by: (isNext ? pin.nextBy : undefined) ?? pin.approvedBy,
    };
    const shown = isSkillName(name) ? name : visible(name, 128);
    return {
      name: shown,
      description: head.description,
      location:
        scope === "builtin"
          ? `builtin:${shown}`
          : visible(`${scope === "agent" ? `agents/${agentId}/` : ""}skills/${shown}/${SKILL_FILE}`, 1024),
      always: own.always,
      eligible: isUsable(own.state),
      eligibleHosts: own.eligibleHosts.slice(0, 1000),
      reasons: own.reasons.slice(0, 64).map((reason) => visible(reason, 1024)),
      requirements: {
        capabilities: own.capabilities.slice(0, 64).map(asCapability),
        ...(head.bins.length === 0 ? {} : { bins: [...head.bins] }),
      },
      scope,
      state: own.state,
      ...(head.homepage === undefined ? {} : { homepage: head.homepage }),
      ...(head.emoji === undefined ? {} : { emoji: head.emoji }),
      ...(head.install.length === 0 ? {} : { install: [...head.install] }),
      ...(sha256 === undefined ? {} : { sha256 }),
      ...(approved === undefined
        ? {}
        : { approvedAt: approved.at, approvedBy: approved.by, ...(approved.sha256 === sha256 ? {} : { approvedSha256: approved.sha256 }) }),
    };
  }
}

/** Shortens a report so that it fits a frame. */
function withinFrame(entries: readonly SkillEntry[]): SkillEntry[] {
  let chars = 0;
  return entries.map((entry) => {
    const whole: SkillEntry = { ...entry, description: visible(entry.description, SHORT_CHARS) };
    chars += JSON.stringify(whole).length;
    if (chars <= REPORT_CHARS) return whole;
    const { name, location, always, eligible, reasons, scope, state } = entry;
    const why = reasons.slice(0, 1).map((reason) => visible(reason, 160));
    const where = scope === undefined ? {} : { scope };
    return {
      name,
      description: visible(entry.description, 80),
      location: visible(location, 160),
      always,
      eligible,
      eligibleHosts: [],
      reasons: why,
      ...where,
      ...(state === undefined ? {} : { state }),
    };
  });
}
