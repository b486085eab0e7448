import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FileBoundaryOptions } from "./file-boundary.ts";
import { FileBoundary } from "./file-boundary.ts";

let base = "";
/** `project` contains the root folder `.skein`, as with `npm start`. `elsewhere` and `b` are next to it. */
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "file-boundary-")));
  for (const name of [
    "project/src",
    "project/.skein/agents/main/sessions",
    "project/.skein/agents/main/workspace/deep",
    "project/.skein/agents/main/attachments/s1",
    "project/.skein/agents/main/attachments/s2",
    "project/.skein/agents/other/workspace",
    "project/.skein/users/ann/agents/main/workspace",
    "elsewhere/deep",
    "b",
  ])
    mkdirSync(join(base, name), { recursive: true });
  symlinkSync("project/.skein", join(base, "to-root"));
  symlinkSync("../.skein/agents", join(base, "project/src/to-agents"));
  symlinkSync("../sessions", join(base, "project/.skein/agents/main/workspace/to-sessions"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const at = (path: string) => join(base, "/").concat(path);
const reports: string[] = [];
const boundary = (options: Partial<FileBoundaryOptions> = {}) => {
  const root = at("project/.skein");
  const folderOf = (userId: string | null, agentId: string) =>
    join(root, ...(userId === null ? [] : ["users", userId]), "agents", agentId);
  reports.length = 0;
  return new FileBoundary({
    rootFolders: [root],
    agentFolder: folderOf,
    attachments: (userId, agentId, sessionId) => join(folderOf(userId, agentId), "attachments", sessionId),
    configurationNames: ["skein.yaml", "skein.yml", "skein.json", ".env"],
    configurationFiles: [at("elsewhere/own.yaml")],
    agent: () => ({ cwd: null, roots: [] }),
    process: { path: at("project"), users: "all" },
    checkRootInPlace: () => undefined,
    report: (problem) => reports.push(problem),
    ...options,
  });
};
/** Runs a command for which `folder` is also mounted under a second name. */
function inMount(folder: string, name: string, command: readonly string[]): string {
  const script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"';
  return execFileSync("unshare", ["-Urm", "sh", "-c", script, "sh", folder, name, ...command], {
    encoding: "utf8",
    stdio: "pipe",
  });
}

function canMount(): boolean {
  const [one, other] = [1, 2].map(() => mkdtempSync(join(tmpdir(), "mount-")));
  try {
    return inMount(one ?? "", other ?? "", ["echo", "mounted"]) === "mounted\n";
  } catch {
    return false; // not Linux, or namespaces are not permitted
  } finally {
    for (const each of [one, other]) rmSync(each ?? "", { recursive: true, force: true });
  }
}

const s1 = { userId: null, agentId: "main", sessionId: "s1" };

describe("files", () => {
  test.each([
    "project/.skein/token",
    "project/.skein/agents/main/sessions/x.jsonl",
    "project/.skein/agents/main/attachments/s2/a.txt",
    "project/.skein/agents/main/attachments/s1/../s2/a.txt",
    "project/.skein/agents/main/attachments/S1/a.txt",
    "project/.skein/agents/main/workspace/../sessions/x.jsonl",
    "project/.skein/agents/main/workspace/to-sessions/x.jsonl",
    "project/.skein/agents/main/workspace-2/x",
    "project/.skein/agents/other/workspace/x",
    "project/.skein/users/ann/agents/main/workspace/x",
    "project/.skein/new/folder/x",
    "project/.SKEIN/token",
    "project/.ske\u200din/token",
    "project/src/../.skein/token",
    "project/src/to-agents/main/sessions/x.jsonl",
    "project/src/to-agents/../token",
    "to-root/token",
    "to-root",
  ])("[FBD1] %s is neither read nor written", (path) => {
    for (const action of ["read", "write"] as const)
      expect(boundary().checkPath(s1, at(path), action)).toEqual({ refusal: "in_root_folder" });
  });

  test("[FBD1] a Unicode form of the root folder's name is the root folder", () => {
    mkdirSync(at("Ma\u00f1ana/deep"), { recursive: true });
    const bound = boundary({ rootFolders: [at("Ma\u00f1ana")] });
    for (const name of ["Man\u0303ana/x", "MA\u00d1ANA/x", "man\u0303ana/deep/x"])
      expect(bound.checkPath(s1, at(name), "write")).toEqual({ refusal: "in_root_folder" });
  });

  test("[FBD1] a root folder that does not exist yet is protected", () => {
    rmSync(at("project/.skein"), { recursive: true });
    expect(boundary().checkPath(s1, at("project/.skein/token"), "write")).toEqual({
      refusal: "in_root_folder",
    });
  });

  test.skipIf(!canMount())("[FBD1] a mount of the root folder elsewhere is the root folder", () => {
    const root = at("project/.skein");
    const script = `
      import { FileBoundary } from ${JSON.stringify(new URL("./file-boundary.ts", import.meta.url).href)};
      const bound = new FileBoundary({ rootFolders: [${JSON.stringify(root)}], agentFolder: () => null,
        attachments: () => null, configurationNames: [], configurationFiles: [] });
      const owner = { userId: null, agentId: "main" };
      console.log(JSON.stringify([bound.checkPath(owner, ${JSON.stringify(at("b/agents/x"))}, "write"),
        bound.resolveCwd(owner, ${JSON.stringify(at("b/agents"))}, "operator")]));`;
    const node = [process.execPath, "--input-type=module", "-e", script];
    expect(JSON.parse(inMount(root, at("b"), node))).toEqual([
      { refusal: "in_root_folder" },
      { refusal: "in_root_folder" },
    ]);
  });

  test.each([
    "project/.skein/agents/main/attachments/s1/a.txt",
    "project/.skein/agents/main/workspace/deep/a.txt",
    "project/.skein/agents/main/workspace/new/a.txt",
    "to-root/agents/main/workspace/a.txt",
    "project/.skeins",
    "project/src/a.txt",
    "elsewhere/a.txt",
  ])("[FBD1] %s is read and written", (path) => {
    const real = at(path).replace("to-root", "project/.skein");
    for (const action of ["read", "write"] as const)
      expect(boundary().checkPath(s1, at(path), action)).toEqual({ path: real });
  });

  test.each([
    "project/skein.yaml",
    "project/src/skein.yml",
    "elsewhere/deep/skein.json",
    "elsewhere/.env",
    "project/.ENV",
    "project/Skein.YAML",
    "project/.e\u200cnv",
    "project/skein.yaml::$DATA",
    "project/skein.yaml.",
    "project/.env/x",
    "project/.skein/agents/main/workspace/.env",
    "elsewhere/own.yaml",
    "b/../elsewhere/own.yaml",
  ])("[FBD3] %s is read, but never written", (path) => {
    expect(boundary().checkPath(s1, at(path), "write")).toEqual({ refusal: "configuration_file" });
    expect(boundary().checkPath(s1, at(path), "read")).not.toHaveProperty("refusal");
  });

  test.each([
    "project/node_modules/sharp/index.js",
    "elsewhere/NODE_MODULES/a.js",
    "project/src/node_modules",
    "project/.git/hooks/pre-commit",
    "project/.Git",
  ])("[FBD11] %s is read, but never written", (path) => {
    expect(boundary().checkPath(s1, at(path), "write")).toEqual({ refusal: "code_folder" });
    expect(boundary().checkPath(s1, at(path), "read")).not.toHaveProperty("refusal");
  });

  test.each(["relative/a.txt", "missing/../a.txt", "a\0b"])("[FBD1] %s is refused", (path) => {
    const given = path.startsWith("relative") ? path : at(path);
    expect(boundary().checkPath(s1, given, "read")).toEqual({ refusal: "unresolvable" });
  });
});

describe("working directories", () => {
  const agent = (cwd: string | null, ...roots: string[]) => ({
    agent: () => ({ cwd: cwd === null ? null : at(cwd), roots: roots.map(at) }),
  });
  const resolveCwd = (
    wanted: string | null,
    chooser: Parameters<FileBoundary["resolveCwd"]>[2],
    options: Partial<FileBoundaryOptions> = {},
  ) => {
    const choice = boundary(options).resolveCwd(s1, wanted === null ? null : at(wanted), chooser);
    return "cwd" in choice ? choice.cwd.slice(base.length + 1) : choice.refusal;
  };
  const child = (cwd: string) => ({ parent: { agentId: "main", cwd: at(cwd) } });

  test.each([
    "project/.skein",
    "project/.skein/agents/main",
    "project/.skein/agents/main/sessions",
    "project/.skein/agents/main/attachments/s1",
    "project/.skein/agents/other/workspace",
    "project/.skein/agents/main/workspace/to-sessions",
    "project/src/to-agents",
    "project/src/to-agents/..",
    "to-root",
  ])("[FBD4] %s is never a working directory", (wanted) => {
    for (const chooser of ["operator", "session", child("project")] as const)
      expect(resolveCwd(wanted, chooser)).toBe("in_root_folder");
    const recorded = { ...s1, cwd: at(wanted), parent: null };
    expect(boundary().cwdOf(recorded)).toBe(at("project"));
  });

  test("[FBD4] the workspace of user and agent is a working directory", () => {
    const workspace = "project/.skein/agents/main/workspace";
    expect(resolveCwd(`${workspace}/deep`, "operator")).toBe(`${workspace}/deep`);
    expect(resolveCwd(workspace, child(workspace))).toBe(workspace);
  });

  test("[FBD5] a folder that contains the root folder is a working directory", () => {
    expect(resolveCwd("project", "operator")).toBe("project");
    expect(resolveCwd(null, "session")).toBe("project");
  });

  test.each([
    ["roots restrict the operator", "b", "operator", agent(null, "elsewhere"), "outside"],
    ["a folder in a root", "elsewhere/deep", "operator", agent(null, "elsewhere"), "elsewhere/deep"],
    ["without roots, the agent's own folder restricts", "b", "operator", agent("project"), "outside"],
    ["inside the agent's own folder", "project/src", "session", agent("project"), "project/src"],
    ["if nothing is configured, an operator chooses", "b", "operator", {}, "b"],
    ["others do not choose", "b", "session", {}, "outside"],
    ["inside the default", "project/src", "session", {}, "project/src"],
    ["a name with the same prefix", "project-2", "session", {}, "outside"],
    ["a folder that does not exist yet", "missing", "operator", {}, "missing"],
    ["a missing folder inside the root folder", "to-root/missing", "operator", {}, "in_root_folder"],
  ] as const)("[FBD6] %s", (_, wanted, chooser, options, expected) => {
    mkdirSync(at("project-2"));
    expect(resolveCwd(wanted, chooser, options)).toBe(expected);
  });

  test.each([
    ["inside the parent's", "elsewhere/deep", {}, "elsewhere/deep"],
    ["outside the parent's", "b", {}, "outside"],
    ["a file inside the parent's", "elsewhere/file", {}, "outside"],
    ["a missing folder inside the parent's", "elsewhere/missing", {}, "outside"],
    ["in a root", "b", agent(null, "b"), "b"],
  ] as const)("[FBD7] a child's, %s", (_, wanted, options, expected) => {
    writeFileSync(at("elsewhere/file"), "");
    expect(resolveCwd(wanted, child("elsewhere"), options)).toBe(expected);
  });

  test("[FBD8] a recorded directory that is no longer allowed is replaced by the default, and reported once", () => {
    const bound = boundary(agent("elsewhere"));
    const recorded = { ...s1, cwd: at("b"), parent: null };
    expect([bound.cwdOf(recorded), bound.cwdOf(recorded)]).toEqual([at("elsewhere"), at("elsewhere")]);
    expect(reports).toHaveLength(1);
    expect(reports[0]).toContain("session s1");
    expect(bound.cwdOf({ ...recorded, cwd: "" })).toBe(at("elsewhere"));
    expect(bound.cwdOf({ ...recorded, parent: { agentId: "main", cwd: at("b") } })).toBe(at("b"));
  });

  test("[FBD8] a process that runs in the root folder gives sessions the workspace, created on use", () => {
    const bound = boundary({ process: { path: at("project/.skein"), users: "all" } });
    const ben = { userId: "ben", agentId: "main", sessionId: "s3" };
    const workspace = at("project/.skein/users/ben/agents/main/workspace");
    expect(bound.resolveCwd(ben, null, "session")).toEqual({ cwd: workspace });
    expect(existsSync(workspace)).toBe(false);
    expect(bound.cwdOf({ ...ben, cwd: workspace, parent: null })).toBe(workspace);
    expect(existsSync(workspace)).toBe(true);
    expect(reports).toEqual([]);
  });

  test("[FBD6] an agent that has only roots works in its first root, unless the process works in one", () => {
    expect(resolveCwd(null, "session", agent(null, "elsewhere", "b"))).toBe("elsewhere");
    expect(resolveCwd(null, "session", agent(null, "elsewhere", "project"))).toBe("project");
  });
});
