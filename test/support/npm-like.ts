// A process for the `skein start` tests. Runs a script as npm does, through a shell that keeps running.
import { spawn } from "node:child_process";

const [event = "", ...script] = process.argv.slice(2);
process.title = "npm start";
const env = { ...process.env, npm_lifecycle_event: event };
const quoted = [process.execPath, ...script].map((word) => `'${word}'`).join(" ");
const child = spawn("sh", ["-c", `${quoted}; exit $?`], { env, stdio: ["ignore", 1, 2] });
child.on("exit", (code) => process.exit(code ?? 1));
