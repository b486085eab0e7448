import "./check-node.ts";

export { connect } from "./client/connect.ts";
export type { ClientState, ConnectOptions, FollowOptions, SkeinClient } from "./client/contract.ts";
export { CallError } from "./client/contract.ts";
export { readAnnouncement } from "./core/announcement.ts";
export type { EventFilter, EventStream, ReceivedEvent } from "./protocol/calls.ts";
export type { MethodName, Params, Result } from "./protocol/method-table.ts";
