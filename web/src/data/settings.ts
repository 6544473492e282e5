import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, tagged, unlessChanged } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'
import type { Json } from '@/settings/flat'
import { text } from '@/text'
import { notify } from '@/ui/toasts'

export interface Config {
  generation: number
  /** Why the file on disk can't be used. Null if it is valid. */
  error: { file: string; line: number | null; column: number | null; message: string } | null
  home: string
  config: Record<string, Json>
  origin: Record<string, string>
  notes: string[]
  /** Allowed values of the settings that accept only certain values, by dotted key. */
  choices: Record<string, string[]>
}

export const configQuery = queryOptions({
  queryKey: ['config'],
  queryFn: ({ signal }) => api.get<Config>('/config', { signal }),
})

export function useConfig() {
  return useQuery({
    ...configQuery,
    refetchInterval: 5_000, // the server watches the file, so edits made there appear here
  })
}

/** Return the configured default model: empty if none is set, null while loading. */
export function useMain(): string | null {
  const { data } = useConfig()
  if (!data) return null
  const models = data.config.models
  const main = models && typeof models === 'object' && !Array.isArray(models) ? models.main : ''
  return typeof main === 'string' ? main : ''
}

/** Save values to the configuration file, all or none. They apply immediately. */
export function useConfigChange() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (values: Record<string, Json>) => api.patch<Config>('/config', { values }),
    onSuccess: (config) => {
      client.setQueryData(['config'], config)
      void client.invalidateQueries()
    },
  })
}

export interface Model {
  id: string
  model: string
  provider: string
  context: number | null
  modalities: string[]
  tools: 'native' | 'schema' | 'none'
  reasoning: boolean
  /** Price in nano-dollars per token. */
  price: { input: number | null; output: number | null } | null
  note: string
}

export function useModels() {
  return useQuery({
    queryKey: ['models', 'all'],
    queryFn: ({ signal }) =>
      api.get<Page<Model> & { problems: Record<string, string> }>('/models', { query: { limit: 200 }, signal }),
    staleTime: 30_000,
  })
}

export type Provider = components['schemas']['ProviderOut']

export function useProviders() {
  return useQuery({
    queryKey: ['providers'],
    queryFn: ({ signal }) => api.get<Page<Provider>>('/providers', { query: { limit: 200 }, signal }),
    staleTime: 30_000,
  })
}

/** Save a provider's key and address after a test, or remove them from the configuration. */
export function useProviderActions() {
  const client = useQueryClient()
  const onSuccess = () => void client.invalidateQueries() // not awaited: the form may be gone before the answer of the last one
  const at = (name: string) => `/providers/${encodeURIComponent(name)}`
  return {
    save: useMutation({
      mutationFn: ({ name, body }: { name: string; body: components['schemas']['ProviderIn'] }) =>
        api.put<components['schemas']['TestOut']>(at(name), body),
      onSuccess,
    }),
    remove: useMutation({ mutationFn: (name: string) => api.delete<void>(at(name)), onSuccess }),
  }
}

export type SearchEngine = components['schemas']['SearchEngineOut']
export type SearchEngineFields = components['schemas']['SearchEngineIn']

/** Fetch the search engine that agents use, without its key. */
export function useSearchEngine() {
  return useQuery({
    queryKey: ['web-search'],
    queryFn: ({ signal }) => api.get<SearchEngine>('/web-search', { signal }),
  })
}

/** Save a search engine after a test, or remove it from the configuration. */
export function useSearchEngineActions() {
  const client = useQueryClient()
  const onSuccess = () => void client.invalidateQueries()
  return {
    save: useMutation({
      mutationFn: (body: SearchEngineFields) => api.put<components['schemas']['SearchTestOut']>('/web-search', body),
      onSuccess,
    }),
    remove: useMutation({ mutationFn: () => api.delete<void>('/web-search'), onSuccess }),
  }
}

/** Send a short test prompt to a model. */
export function useTrial() {
  return useMutation({
    mutationFn: ({ provider, model }: { provider: string; model: string }) =>
      api.post<{ text: string; seconds: number }>(`/providers/${encodeURIComponent(provider)}/test`, { model }),
  })
}

export type Agent = components['schemas']['AgentOut']

/** Fields of an agent as sent to the server. Null = the default. */
export type AgentFields = components['schemas']['AgentFieldsIn']

/** Fetch all available agents, with those of a conversation's folder. With `absent`, also known agents that are not installed. */
export function useAgents(absent = false, conversation: string | null = null) {
  return useQuery({
    queryKey: ['agents', absent, conversation],
    queryFn: ({ signal }) => api.get<Page<Agent>>('/agents', { query: { limit: 200, absent, conversation }, signal }),
    staleTime: 30_000,
  })
}

const agentAt = (name: string) => `/agents/${encodeURIComponent(name)}`

/** Fetch an agent with the ETag of its file. An empty name fetches nothing. */
export function useAgentFile(name: string) {
  return useQuery({
    queryKey: ['agents', 'file', name],
    queryFn: ({ signal }) => tagged<Agent>(agentAt(name), { signal }),
    enabled: name !== '',
    staleTime: 0,
    gcTime: 0,
  })
}

/** Create, copy, change and delete agents that are files in moot's home folder. */
export function useAgentActions() {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['agents'] })
  return {
    create: useMutation({
      mutationFn: (body: AgentFields & { name: string; copy_of?: string }) => api.post<Agent>('/agents', body),
      onSettled,
    }),
    change: useMutation({
      mutationFn: ({ name, fields, etag }: { name: string; fields: AgentFields; etag: string }) =>
        unlessChanged(etag, (headers) => api.patch<Agent>(agentAt(name), fields, { headers })),
      onSettled,
    }),
    remove: useMutation({ mutationFn: (name: string) => api.delete<void>(agentAt(name)), onSettled }),
  }
}

export interface Tool {
  name: string
  description: string
  effects: string[]
  available: boolean
  hidden: boolean
  package: string
  /** Why a plugin's tool is unavailable. Empty if it is available. */
  error: string
}

export const toolsQuery = queryOptions({
  queryKey: ['tools'],
  queryFn: ({ signal }) => api.get<Page<Tool>>('/tools', { query: { limit: 200 }, signal }),
  staleTime: 60_000,
})

export function useTools() {
  return useQuery(toolsQuery)
}

/** Fetch the JSON Schema of a tool's arguments once `wanted` is true. */
export function useToolSchema(name: string, wanted: boolean) {
  return useQuery({
    queryKey: ['tools', name],
    queryFn: ({ signal }) => api.get<{ schema: Json }>(`/tools/${encodeURIComponent(name)}`, { signal }),
    enabled: wanted,
    staleTime: 60_000,
  })
}

export type Action = 'allow' | 'ask' | 'deny'
export const MODES = ['ask', 'edits', 'plan', 'auto'] as const
export type Mode = (typeof MODES)[number]

export interface Rule {
  tool: string
  action: Action
  match: string
  /** The file and line of the rule. */
  origin: string | null
}

export interface Permissions {
  mode: Mode
  data: Rule[]
}

export function usePermissions(enabled = true) {
  return useQuery({
    enabled,
    queryKey: ['permissions'],
    queryFn: ({ signal }) => api.get<Permissions>('/permissions', { signal }),
  })
}

export function usePermissionActions() {
  const client = useQueryClient()
  const onSuccess = (now: Permissions) => {
    client.setQueryData(['permissions'], now)
    void client.invalidateQueries({ queryKey: ['config'] })
  }
  return {
    mode: useMutation({ mutationFn: (mode: Mode) => api.put<Permissions>('/permissions/mode', { mode }), onSuccess }),
    add: useMutation({
      mutationFn: (rule: Pick<Rule, 'tool' | 'action' | 'match'>) => api.post<Permissions>('/permissions/rules', rule),
      onSuccess,
    }),
    remove: useMutation({
      mutationFn: ({ tool, match }: Rule) => api.delete<Permissions>('/permissions/rules', { query: { tool, match } }),
      onSuccess,
    }),
  }
}

/** The decision of the permission rules on a tool call, with the reason. */
export interface Ruling {
  action: Action
  why: string
  origin: string
  parts: { text: string; action: Action; why: string }[]
}

export function useRuling() {
  return useMutation({
    mutationFn: (call: { tool: string; subject: string }) => api.post<Ruling>('/permissions/test', call),
  })
}

export interface Token {
  id: string
  name: string
  scopes: string[]
  kind: 'token' | 'browser'
  created_at: number
  used_at: number | null
  expires_at: number | null
  revoked_at: number | null
}

export interface TokenMade extends Token {
  /** The token's secret, which the server returns only once. */
  secret: string
}

export function useTokens() {
  return useQuery({
    queryKey: ['tokens'],
    queryFn: ({ signal }) => api.get<Page<Token>>('/tokens', { query: { limit: 200 }, signal }),
  })
}

export function useTokenActions() {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['tokens'] })
  return {
    create: useMutation({
      mutationFn: (token: { name: string; scopes: string[]; expires_in?: number }) =>
        api.post<TokenMade>('/tokens', token),
      onSettled,
    }),
    revoke: useMutation({
      mutationFn: (id: string) => api.delete(`/tokens/${id}`),
      onSuccess: () => notify(text.tokens.revoked),
      onSettled,
    }),
  }
}
