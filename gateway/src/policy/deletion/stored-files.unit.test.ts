import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, each } from "./deletion-cases.ts";
import { removesStored } from "./stored-files.ts";

interface Documented {
  /** Deletions, as the words behind the program and its global options. */
  readonly deletes: readonly string[];
  /** Commands that delete nothing, to be asked about in no form. */
  readonly keeps: readonly string[];
  /** Global options with a value: the long name, a value, and the short name. */
  readonly options: readonly (readonly [long: string, value: string, short?: string])[];
}
const PROGRAMS: Readonly<Record<string, Documented>> = {
  gcloud: {
    deletes: [
      "storage rm -r gs://b/d",
      "storage buckets delete gs://b",
      "alpha storage rm gs://b/**",
      "storage rsync --delete-unmatched-destination-objects d gs://b",
      "sql instances delete x",
      "projects delete p",
      "compute disks delete d",
    ],
    keeps: [
      "storage ls",
      "storage cp a gs://b/rm",
      "logging read delete",
      "compute instances list --filter delete",
      "config set project delete",
    ],
    options: [
      ["--project", "p"],
      ["--account", "a@b.example"],
      ["--configuration", "c"],
      ["--billing-project", "p"],
      ["--impersonate-service-account", "a@b.example"],
      ["--access-token-file", "f"],
      ["--flags-file", "f.yaml"],
      ["--flatten", "a[]"],
      ["--format", "json"],
      ["--verbosity", "error"],
      ["--trace-token", "t"],
    ],
  },
  s5cmd: {
    deletes: ["rm 's3://b/*'", "rb s3://b", "run commands.txt", "sync --delete d s3://b/"],
    keeps: ["ls s3://b", "cp a s3://b/rm", "sync d s3://b/", "cat s3://b/rm"],
    options: [
      ["--endpoint-url", "https://s3.example"],
      ["--profile", "p"],
      ["--credentials-file", "f"],
      ["--numworkers", "8"],
      ["--retry-count", "3", "-r"],
      ["--log", "error"],
      ["--request-payer", "requester"],
    ],
  },
  mc: {
    deletes: ["rm --recursive --force m/b", "rb --force m/b", "mirror --remove d m/b", "admin bucket remote rm x", "ilm rule rm --all m/b"],
    keeps: ["ls m/b", "cp remove m/b", "alias rm x", "mirror d m/b", "admin info m", "find m/b --name remove"],
    options: [
      ["--config-dir", "d", "-C"],
      ["--resolve", "a:9000=10.0.0.1"],
      ["--limit-upload", "1MiB/s"],
      ["--limit-download", "1MiB/s"],
      ["--custom-header", "a:b", "-H"],
    ],
  },
  azcopy: {
    deletes: ["rm https://x", "remove https://x --recursive", "sync d https://x --delete-destination=true"],
    keeps: ["copy d https://x", "jobs remove x", "sync d https://x --delete-destination=false", "list https://x"],
    options: [
      ["--log-level", "ERROR"],
      ["--output-level", "quiet"],
      ["--output-type", "json"],
      ["--cap-mbps", "10"],
      ["--trusted-microsoft-suffixes", "x.example"],
    ],
  },
  hdfs: {
    deletes: ["dfs -rm -r /d", "dfs -expunge"],
    keeps: ["dfs -ls /d", "dfsadmin -report"],
    options: [
      ["--config", "c"],
      ["--loglevel", "ERROR"],
      ["--hostnames", "h"],
    ],
  },
  hadoop: {
    deletes: ["fs -rm -r /d", "fs -rmr /d", "distcp -update -delete a b"],
    keeps: ["fs -ls /d", "jar wc.jar delete in out"],
    options: [
      ["--config", "c"],
      ["--loglevel", "ERROR"],
      ["--hostnames", "h"],
    ],
  },
  ozone: {
    deletes: [
      "fs -rm -r /d",
      "sh key delete /v/b/k",
      "sh bucket delete -r --yes /v/b",
      "shell volume delete /v",
      "sh snapshot delete /v/b s",
    ],
    keeps: ["fs -ls /d", "sh volume list", "sh key put /v/b/delete f"],
    options: [
      ["--config", "c"],
      ["--loglevel", "ERROR"],
      ["--hostnames", "h"],
    ],
  },
  borg: {
    deletes: ["delete a", "prune --keep-daily 1", "repo-delete", "recreate --exclude x"],
    keeps: ["list", "list delete", "create a delete", "info prune", "compact"],
    options: [
      ["--repo", "/srv/repo", "-r"],
      ["--remote-path", "borg1"],
      ["--rsh", "'ssh -i k'"],
      ["--lock-wait", "5"],
      ["--umask", "0077"],
      ["--debug-topic", "t"],
      ["--debug-profile", "f"],
      ["--upload-ratelimit", "100"],
      ["--upload-buffer", "10"],
    ],
  },
  restic: {
    deletes: [
      "forget --keep-last 1 --prune",
      "prune",
      "forget a1b2c3d4",
      "rewrite --forget --exclude x latest",
      "repair snapshots --forget",
    ],
    keeps: ["snapshots", "backup forget", "ls latest prune", "check", "rewrite --exclude x latest", "rewrite --forget -n latest"],
    options: [
      ["--repo", "/srv/repo", "-r"],
      ["--repository-file", "f"],
      ["--password-file", "/f", "-p"],
      ["--password-command", "'pass restic'"],
      ["--option", "sftp.args=-v", "-o"],
      ["--cacert", "f"],
      ["--cache-dir", "d"],
      ["--compression", "max"],
      ["--key-hint", "k"],
      ["--limit-download", "100"],
      ["--limit-upload", "100"],
      ["--pack-size", "64"],
      ["--retry-lock", "5m"],
      ["--tls-client-cert", "f"],
    ],
  },
  kopia: {
    deletes: [
      "snapshot delete k --delete",
      "snapshot expire --delete --all",
      "snap delete k",
      "manifest rm i",
      "blob delete i",
      "contents delete i",
      "blob gc --delete=yes",
      "snapshot gc --delete",
    ],
    keeps: ["snapshot list", "manifest list", "snapshot create delete", "policy show snapshot"],
    options: [
      ["--config-file", "c"],
      ["--log-dir", "d"],
      ["--log-level", "error"],
      ["--file-log-level", "error"],
      ["--password", "x", "-p"],
    ],
  },
  duplicity: {
    deletes: [
      "remove-older-than 1D --force u",
      "remove-all-but-n-full 1 --force u",
      "remove-all-inc-of-but-n-full 1 --force u",
      "cleanup --force u",
    ],
    keeps: ["collection-status u", "full cleanup u", "restore u d"],
    options: [
      ["--archive-dir", "d"],
      ["--name", "n"],
      ["--tempdir", "d"],
      ["--encrypt-key", "k"],
      ["--gpg-options", "o"],
      ["--num-retries", "3"],
      ["--timeout", "30"],
      ["--verbosity", "5", "-v"],
      ["--time", "3D", "-t"],
    ],
  },
  btrfs: {
    deletes: ["subvolume delete d", "sub del d", "su d d"],
    keeps: ["subvolume list d", "subvolume show delete", "device remove a d"],
    options: [
      ["--log", "debug"],
      ["--format", "json"],
    ],
  },
  // They have no global option with a value.
  zfs: {
    deletes: [
      "destroy -r p/d",
      "rollback -r p/d@s",
      "receive -F p/d",
      "recv -uF p/d",
      "recv -xmountpoint -F p/d",
      "receive -ocanmount=off -F p/d",
    ],
    keeps: [
      "list destroy",
      "snapshot p/destroy@s",
      "receive p/F",
      "receive -nF p/d",
      "recv -Fn -xmountpoint p/d",
      "recv -F -n p/d",
      "recv -ocompression=Fast p/d",
    ],
    options: [],
  },
  zpool: { deletes: ["destroy p", "labelclear -f d"], keeps: ["status destroy", "list"], options: [] },
};

/** Each way to write an option with its value. `joint`: what joins a short one with it in the same word. */
function formsOf([long, value, short]: Documented["options"][number], joint: string): readonly string[] {
  const forms = [`${long} ${value}`, `${long}=${value}`];
  return short === undefined ? forms : [...forms, `${short} ${value}`, `${short}${joint}${value}`];
}
/** The lines of a program with each of its options, alone and behind another one. */
function linesOf(program: string, commands: readonly string[], others: readonly string[]): readonly string[] {
  const joint = ["s5cmd", "mc"].includes(program) ? "=" : "";
  const forms = PROGRAMS[program]?.options.flatMap((option) => formsOf(option, joint)) ?? [];
  const before = ["", ...forms, ...others.flatMap((other) => [other, ...forms.map((form) => `${other} ${form}`)])];
  return commands.flatMap((command) => before.map((options) => [program, options, command].filter((part) => part !== "").join(" ")));
}

describe("[PO13] deletions of stored files", () => {
  for (const [program, { deletes, keeps }] of Object.entries(PROGRAMS)) {
    it(`${program}: no option with a value hides a deletion, or makes one of another command`, () => {
      const [many, few] = [linesOf(program, deletes, ["--unknown-option", "--unknown-option x", "-Z y"]), linesOf(program, keeps, [])];
      assert.deepEqual([all(many), all(few)], [each(many, "many"), each(few, "few")]);
    });
  }
  it("many: an option between the words of the command, of unknown kind, with two values, or made by the shell", () => {
    const many = [
      "gcloud storage --project p rm -r gs://b",
      "gcloud --quiet storage --account a buckets --format json delete gs://b",
      "gcloud --project list projects delete p",
      "btrfs subvolume --commit each delete d",
      "kopia snapshot --config-file c delete k",
      "mc admin --config-dir d bucket remote rm x",
      "restic --new-option prune",
      "restic --new-option prune snapshots",
      "restic --new-option x prune",
      "restic --new-option -x y prune",
      "borg -vp --new x delete a",
      "borg -- delete a",
      "borg --repo '' delete a",
      "borg '' delete a",
      "duplicity --rename a b remove-older-than 1D --force u",
      "s5cmd $OPTIONS rm 's3://b/*'",
      'restic "$OPTION" /srv/repo forget --keep-last 1',
      "borg $OPTIONS delete a",
      "s5cmd sync --delete=true d s3://b/",
      "s5cmd sync -delete d s3://b/",
      "mc mirror --remove=true d m/b",
      "sudo restic -r /srv/repo prune",
      "borg --repo /srv/repo with-lock rm -rf d",
      "borg with-lock r rsync -a --delete d/ e/",
      'python3 -c \'subprocess.run(["restic", "-r", "/srv/repo", "prune"])\'',
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: a word that deletes nothing in its place, after options that take no value", () => {
    const few = [
      "borg -r /srv/repo list",
      "borg -vp create r::a delete",
      "borg --progress create r::a prune",
      "borg with-lock r rsync -a d/ e/",
      "restic -r /srv/repo snapshots",
      "restic -q backup forget",
      "restic -qv backup prune",
      "gcloud --project p storage ls",
      "gcloud --project p --quiet compute instances describe delete",
      "gcloud run services describe delete --region r",
      "mc --json --quiet alias rm x",
      "mc --config-dir d ls m/b",
      "azcopy --skip-version-check jobs remove x",
      "duplicity --archive-dir d full cleanup u",
      "hdfs --config c dfs -ls /rm",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: deletions of cloud resources and of settings of a server", () => {
    const many = [
      "gcloud sql instances delete x",
      "gcloud projects delete p",
      "gcloud compute disks delete d",
      "gcloud compute firewall-rules delete x",
      "gcloud secrets versions destroy 1 --secret s",
      "gcloud tasks queues purge q",
      "gcloud beta firestore bulk-delete --collection-ids c",
      "gcloud --quiet --project p container clusters delete c",
      "mc admin bucket remote rm x",
      "mc admin user remove m u",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
});

it("[PO13] a call with very many options and words is read once, not once for each of them", () => {
  for (const [program, words] of [
    ["gcloud", ["a", "--b"]],
    ["gcloud", ["gcloud", "--b", "list"]],
    ["mc", ["a", "--b", "$C"]],
    ["s5cmd", ["--b", "rm", "--help"]],
    ["borg", ["--b", "delete", "-n"]],
  ] as const) {
    const args = Array.from({ length: 20_000 }, (_, at) => words[at % words.length] ?? "");
    const started = performance.now();
    removesStored(program, args);
    assert.ok(performance.now() - started < 500, `${program} ${words.join(" ")}`);
  }
});

describe("[PO13] trial runs of programs that delete stored files", () => {
  it("few: the documented option of the program, or its help", () => {
    const few = [
      "s5cmd --dry-run rm 's3://b/*'",
      "s5cmd --profile p --dry-run rm 's3://b/*'",
      "s5cmd --log error --dry-run sync --delete d s3://b/",
      "s5cmd rm --help",
      "mc rm --dry-run m/b",
      "mc mirror --remove --dry-run d m/b",
      "azcopy rm https://x --recursive=true --dry-run",
      "azcopy sync d https://x --delete-destination=true --dry-run",
      "gcloud storage rsync -r --delete-unmatched-destination-objects --dry-run d gs://b",
      "gcloud storage rm --help",
      "borg prune -v --list --dry-run --keep-daily 7 r",
      "borg -r /srv/repo delete -n a",
      "borg delete a --stats -n",
      "restic -r /srv/repo forget --keep-last 1 --prune --dry-run",
      "restic forget --tag a -n",
      "restic prune -n",
      "duplicity remove-older-than 1D --dry-run u",
      "zfs destroy -n p",
      "zfs destroy -rn p",
      "zfs destroy -r -nv p",
      "btrfs subvolume delete --help",
    ];
    assert.deepEqual(all(few), each(few, "few"));
    // The other mc runs commands, so a whole line counts the `rm` in it by itself.
    const trials = ["rm --recursive --force --dry-run m/b", "rm -r --force m/b --fake"];
    assert.deepEqual(
      trials.map((trial) => removesStored("mc", trial.split(" "))),
      [false, false],
    );
  });
  it("many: the value of another option, an empty argument, an operand, an option of another program, or one that is taken back", () => {
    const many = [
      "restic forget --tag -n --keep-last 1",
      "restic forget --tag --dry-run --keep-last 1",
      "restic forget --tag --help --keep-last 1",
      "restic forget $X -n",
      "restic prune --dry-run=false",
      "restic prune --dry-run --dry-run=false",
      "borg delete --comment -n r",
      "borg delete -- -n",
      "borg delete -- --help",
      "s5cmd rm 's3://b/*' --dry-run",
      "s5cmd -n rm 's3://b/*'",
      "s5cmd sync --delete -n d s3://b/",
      "s5cmd --profile --dry-run rm 's3://b/*'",
      "mc rb --force --dry-run m/b",
      "mc rm -r --force m/b -n",
      "mc rm -r --force --older-than --dry-run m/b",
      "azcopy rm https://x -n",
      "gcloud storage rm -r gs://b --dry-run",
      "gcloud storage rsync --delete-unmatched-destination-objects -n d gs://b",
      "gcloud projects delete p -n",
      "kopia snapshot delete k -n",
      "kopia snapshot delete k --dry-run",
      "duplicity remove-older-than 1D --force -n u",
      "duplicity remove-older-than 1D --force --name --dry-run u",
      "zfs rollback -n p@s",
      "zfs destroy p --dry-run",
      "zpool destroy -n p",
      "btrfs subvolume delete -n d",
      "btrfs --dry-run subvolume delete d",
      "hdfs dfs -rm -r /d -n",
      "hdfs dfs -rm -r /d --help",
      "hadoop fs -rm -r --dry-run /d",
      "btrfs subvolume delete a ''",
      "hdfs dfs -rm -r /d ''",
      "hadoop fs -rm -r -f '' /d",
      "ozone fs -rm -r '' /d",
      "gcloud storage rm -r gs://b ''",
      "zpool destroy p ''",
      "mc rb --force '' m/b",
      "kopia snapshot delete k ''",
      "zfs rollback '' p@s",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
});
