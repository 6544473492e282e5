import { api } from '@/api/client'
import type {
  Answer,
  Approval,
  Changes,
  Conversation,
  Message,
  Node,
  Page,
  Part,
  Queue,
  Queued,
  Run,
  UndoPart,
  UndoPlan,
} from '@/api/types'

const at = (id: string) => `/conversations/${encodeURIComponent(id)}`

/** Return a message with the id that streams use: the client's id if it has one, otherwise the server's. */
function asSent(stored: StoredMessage): Message {
  const { id, client_id, ...message } = stored
  return { ...message, id: client_id ?? id, stored_id: id }
}

type StoredMessage = Omit<Message, 'stored_id'> & { client_id: string | null }

interface StoredQueue {
  data: (Omit<Queued, 'prompt'> & { prompt: StoredMessage | null })[]
  steered: StoredMessage[]
}

function queueOf({ data, steered }: StoredQueue): Queue {
  const runs = data.map((run) => ({ ...run, prompt: run.prompt && asSent(run.prompt) }))
  return { runs, steered: steered.map(asSent) }
}

/** A page of messages in conversation order. The newest page comes first. */
export interface MessagePage {
  messages: Message[]
  older: string | null
}

export const conversations = {
  get: (id: string, signal?: AbortSignal) => api.get<Conversation>(at(id), { signal }),
  change: (
    id: string,
    changes: Partial<{
      title: string
      settings: Record<string, unknown>
      head: string
      model: string
      agent: string
      temporary: false
    }>,
  ) => api.patch<Conversation>(at(id), changes),
  messages: async (id: string, cursor: string | null, limit: number, signal?: AbortSignal): Promise<MessagePage> => {
    const page = await api.get<Page<StoredMessage>>(`${at(id)}/messages`, { query: { cursor, limit }, signal })
    return { messages: page.data.map(asSent), older: page.next_cursor }
  },
  /** Return a page of messages from the start of the conversation. The cursor leads to newer ones. */
  firstMessages: async (id: string, cursor: string | null, limit: number, signal?: AbortSignal) => {
    const query = { start: 'oldest', cursor, limit }
    const page = await api.get<Page<StoredMessage>>(`${at(id)}/messages`, { query, signal })
    return { messages: page.data.map(asSent), newer: page.next_cursor }
  },
  tree: (id: string, signal?: AbortSignal) =>
    api.get<{ data: Node[]; head: string | null }>(`${at(id)}/tree`, { signal }),
  fork: (id: string, message?: string) => api.post<Conversation>(`${at(id)}/fork`, { message }),
  /** Return the conversation to continue in. For a conversation that another program writes, this is a linked copy. */
  continueFrom: (id: string, message?: string) =>
    api.post<{ conversation: Conversation; message: string | null }>(`${at(id)}/continue`, { message }),
  deleteMessage: (id: string, message: string) => api.delete(`${at(id)}/messages/${encodeURIComponent(message)}`),
  restoreMessage: (id: string, message: string) =>
    api.post(`${at(id)}/messages/${encodeURIComponent(message)}/restore`),
  switch: (id: string, message: string) => api.patch<Conversation>(at(id), { head: message }),
  /** Undo the last prompt: its messages, the files that it changed, or both. */
  undo: (id: string, what: { part: UndoPart; overwrite?: boolean; dry_run?: boolean }) =>
    api.post<UndoPlan>(`${at(id)}/undo`, what),
  redo: (id: string) => api.post<UndoPlan>(`${at(id)}/redo`, {}),
  /** Return the files changed by the run that wrote a message, or by all runs of the current branch. */
  changes: (id: string, message: string | null, signal?: AbortSignal) =>
    api.get<Changes>(`${at(id)}/changes`, { query: { message }, signal }),
  stop: (id: string) => api.post(`/chat/${encodeURIComponent(id)}/stop`),
  /** Submit a prompt without waiting for the response. */
  submit: (
    id: string,
    prompt: { client_id: string; parts: Part[]; on_busy: 'queue' | 'steer'; [name: string]: unknown },
  ) => api.post<{ notes: string[] }>(`${at(id)}/messages`, prompt),
  queue: async (id: string, signal?: AbortSignal) => queueOf(await api.get<StoredQueue>(`${at(id)}/queue`, { signal })),
  withdraw: (id: string, run: string) => api.delete(`${at(id)}/queue/${run}`),
  withdrawSteered: (id: string, message: string) =>
    api.delete(`${at(id)}/queue/steered/${encodeURIComponent(message)}`),
  /** Remove everything that no model has read yet, and return it. */
  emptyQueue: async (id: string) => queueOf(await api.delete<StoredQueue>(`${at(id)}/queue`)),
}

export const approvals = {
  /** Return the open approvals, of one conversation or of all. */
  open: async (conversation: string | null, signal?: AbortSignal) =>
    (await api.get<Page<Approval>>('/approvals', { query: { conversation, open: true, limit: 200 }, signal })).data,
  answer: (id: string, answer: Answer) => api.post(`/approvals/${encodeURIComponent(id)}`, answer),
  explain: (id: string) => api.post<{ text: string }>(`/approvals/${encodeURIComponent(id)}/explain`),
}

export const runs = {
  get: (id: string) => api.get<Run>(`/runs/${id}`),
  live: async (conversation: string) =>
    (await api.get<Page<Run>>('/runs', { query: { conversation, live: true } })).data,
  cancel: (id: string) => api.post(`/runs/${id}/cancel`),
  resume: (id: string) => api.post(`/runs/${id}/resume`),
}
