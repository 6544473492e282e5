import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, send, tagged, unlessChanged } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'

export type MemoryFile = components['schemas']['MemoryFileOut']
export type MemoryText = components['schemas']['MemoryTextOut']
export type Source = components['schemas']['SourceOut']
export type Document = components['schemas']['DocumentOut']
export type Hit = components['schemas']['PassageOut']

const at = (name: string) => `/memory/${encodeURIComponent(name)}`

export function useMemoryFiles() {
  return useQuery({
    queryKey: ['memory'],
    queryFn: ({ signal }) => api.get<Page<MemoryFile>>('/memory', { signal }),
  })
}

/** Fetch the text of a file with its ETag. An empty name fetches nothing. */
export function useMemoryText(name: string) {
  return useQuery({
    queryKey: ['memory', name],
    queryFn: ({ signal }) => tagged<MemoryText>(at(name), { signal }),
    enabled: name !== '',
    staleTime: 0,
    gcTime: 0,
  })
}

export function useMemoryActions() {
  const client = useQueryClient()
  const onSuccess = () => client.invalidateQueries({ queryKey: ['memory'] })
  return {
    save: useMutation({
      mutationFn: ({ name, text, etag }: { name: string; text: string; etag: string | null }) =>
        etag === null
          ? api.put<MemoryText>(at(name), { text }, { headers: { 'if-none-match': '*' } })
          : unlessChanged(etag, (headers) => api.put<MemoryText>(at(name), { text }, { headers })),
      onSuccess,
    }),
    remove: useMutation({ mutationFn: (name: string) => api.delete<MemoryText>(at(name)), onSuccess }),
  }
}

export function useSources() {
  return useQuery({
    queryKey: ['knowledge'],
    queryFn: ({ signal }) => api.get<Page<Source>>('/knowledge', { signal }),
  })
}

/** Fetch the documents of a source. An empty id fetches nothing. */
export function useDocuments(id: string) {
  return useQuery({
    queryKey: ['knowledge', 'documents', id],
    queryFn: ({ signal }) => api.get<Page<Document>>(`/knowledge/${id}/documents`, { signal }),
    enabled: id !== '',
  })
}

export function useSourceActions() {
  const client = useQueryClient()
  const onSuccess = () => client.invalidateQueries({ queryKey: ['knowledge'] })
  return {
    upload: useMutation({
      mutationFn: (file: File) => send('POST', `/knowledge/uploads/${encodeURIComponent(file.name)}`, file),
      onSuccess,
    }),
    remove: useMutation({ mutationFn: (id: string) => api.delete<Source>(`/knowledge/${id}`), onSuccess }),
  }
}

/** Search documents. An empty query fetches nothing. */
export function useKnowledgeSearch(query: string) {
  return useQuery({
    queryKey: ['knowledge', 'search', query],
    queryFn: ({ signal }) => api.get<Page<Hit>>('/knowledge/search', { query: { q: query, limit: 8 }, signal }),
    enabled: query !== '',
  })
}
