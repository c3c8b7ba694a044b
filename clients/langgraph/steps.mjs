// A thread of an agent that calls a tool again and again, for tests and measurements: each step is a message.
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, END, START, StateGraph, messagesStateReducer } from "@langchain/langgraph";

/** Random words, the same in every run: a text of n bytes that no compression makes small. */
export function words(seed, n) {
  let x = seed * 2654435761 + 12345;
  let text = "";
  while (text.length < n) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    text += (x >>> 8).toString(36) + " ";
  }
  return text.slice(0, n);
}

/** A graph that makes a given number of messages of n bytes each: those of a model and of its tool in turn. */
export function agent(steps, n, checkpointer) {
  const State = Annotation.Root({ messages: Annotation({ reducer: messagesStateReducer, default: () => [] }) });
  return new StateGraph(State)
    .addNode("model", ({ messages: { length } }) => ({
      messages: [new AIMessage({ id: `run-${length}`, content: words(length, n), tool_calls: [{ id: `call-${length}`, name: "look", args: {} }] })],
    }))
    .addNode("tools", ({ messages: { length } }) => ({
      messages: [new ToolMessage({ content: words(length, n), tool_call_id: `call-${length - 1}` })],
    }))
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) => (messages.length < steps ? "tools" : END))
    .addConditionalEdges("tools", ({ messages }) => (messages.length < steps ? "model" : END))
    .compile({ checkpointer });
}

export const question = (n) => ({ messages: [new HumanMessage({ content: words(0, n) })] });
