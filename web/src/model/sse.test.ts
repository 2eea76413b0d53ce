import { expect, it } from "vitest";
import { SseParser } from "./sse";

const STREAM = 'retry: 1000\n\n: still here\n\nid: 9\nevent: plan.step\ndata: {"a":1}\n\nid: 10\r\nevent: run.completed\r\ndata: one\r\ndata: two\r\n\r\n';

it("reads the same events from pieces of any size", () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parser = new SseParser();
    const events = [];
    for (let at = 0; at < STREAM.length; at += size) events.push(...parser.push(STREAM.slice(at, at + size)));
    expect(events).toEqual([
      { id: "9", event: "plan.step", data: '{"a":1}' },
      { id: "10", event: "run.completed", data: "one\ntwo" },
    ]);
  }
});

it("keeps what is not whole yet", () => {
  const parser = new SseParser();
  expect(parser.push("id: 1\ndata: x")).toEqual([]);
  expect(parser.push("\n\n")).toEqual([{ id: "1", event: "message", data: "x" }]);
});
