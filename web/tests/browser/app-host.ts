// A client that shows pages of servers, with the bridge that such clients are built on.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

type Result = Awaited<ReturnType<NonNullable<AppBridge["oncalltool"]>>>;

declare global {
  interface Window {
    /** Calls a tool of the server for the page. */
    callTool: (params: unknown) => Promise<Result>;
    /** What the page said to the agent. */
    said: string[];
    showPage: (html: string, args: Record<string, unknown>, result: Result) => Promise<void>;
  }
}

window.said = [];
window.showPage = async (html, args, result) => {
  const frame = document.createElement("iframe");
  frame.title = "Page of the server";
  frame.setAttribute("sandbox", "allow-scripts");
  frame.style.cssText = "width: 100%; height: 640px; border: 0";
  document.body.replaceChildren(frame);
  const inside = frame.contentWindow;
  if (inside === null) throw new Error("the frame has no window");
  const bridge = new AppBridge(null, { name: "host", version: "1" }, { serverTools: {}, message: { text: {} } }, { hostContext: { theme: "dark" } });
  bridge.oncalltool = (params) => window.callTool(params);
  bridge.onmessage = ({ content }) => {
    for (const block of content) if (block.type === "text") window.said.push(block.text);
    return Promise.resolve({});
  };
  bridge.onsizechange = ({ height }) => {
    if (height !== undefined) frame.style.height = `${height}px`;
  };
  bridge.oninitialized = () => {
    void bridge.sendToolInput({ arguments: args }).then(() => bridge.sendToolResult(result));
  };
  await bridge.connect(new PostMessageTransport(inside, inside));
  frame.srcdoc = html;
};
