import { api, send } from '@/api/client'
import type { Answer, Approval, Conversation, Message, Node, Page, Run } from '@/api/types'

const at = (id: string) => `/conversations/${encodeURIComponent(id)}`

/** Newest page first; within a page the messages are in the order of the conversation. */
export interface MessagePage {
  messages: Message[]
  older: string | null
}

export const conversations = {
  get: (id: string, signal?: AbortSignal) => api.get<Conversation>(at(id), { signal }),
  change: (
    id: string,
    changes: Partial<{ title: string; settings: Record<string, unknown>; head: string; model: string; agent: string }>,
  ) => api.patch<Conversation>(at(id), changes),
  messages: async (id: string, cursor: string | null, limit: number, signal?: AbortSignal): Promise<MessagePage> => {
    const page = await api.get<Page<Message>>(`${at(id)}/messages`, { query: { cursor, limit }, signal })
    return { messages: page.data, older: page.next_cursor }
  },
  tree: (id: string, signal?: AbortSignal) =>
    api.get<{ data: Node[]; head: string | null }>(`${at(id)}/tree`, { signal }),
  fork: (id: string, message?: string) => api.post<Conversation>(`${at(id)}/fork`, { message }),
  deleteMessage: (id: string, message: string) => api.delete(`${at(id)}/messages/${encodeURIComponent(message)}`),
  switch: (id: string, message: string) => api.patch<Conversation>(at(id), { head: message }),
  stop: (id: string) => api.post(`/chat/${encodeURIComponent(id)}/stop`),
  /** Hands a prompt in and does not wait for its answer. */
  say: async (
    id: string,
    prompt: { id: string; parts: Message['parts']; on_busy: string; [name: string]: unknown },
  ) => {
    const { id: message, parts, ...body } = prompt
    const stop = new AbortController()
    await send(
      'POST',
      '/chat',
      { ...body, id, trigger: 'submit-message', message: { id: message, role: 'user', parts } },
      { signal: stop.signal },
    )
    stop.abort()
  },
  queue: async (id: string) => (await api.get<Page<Run>>(`${at(id)}/queue`)).data,
}

export const approvals = {
  of: async (conversation: string) =>
    (await api.get<Page<Approval>>('/approvals', { query: { conversation, open: true, limit: 50 } })).data,
  answer: (id: string, answer: Answer) => api.post(`/approvals/${encodeURIComponent(id)}`, answer),
  explain: (id: string) => api.post<{ text: string }>(`/approvals/${encodeURIComponent(id)}/explain`),
}

export const runs = {
  cancel: (id: string) => api.post(`/runs/${id}/cancel`),
  resume: (id: string) => api.post(`/runs/${id}/resume`),
}
