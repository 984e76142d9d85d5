# The images of the agent and, with --target=controlplane, of the control-plane API. `make docker-build` builds them.
# --version prints VERSION. `make image` builds the same images without Docker (package internal/e2e/image).
#
# The digest pins the builder; .github/dependabot.yml moves it together with the tag. The tag must not be older than the Go
# version in go.mod, because the image does not download another toolchain.
FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:3c3e25a4da13fd0478eed2df1eb35a0e667094a7124d3993a6a1d30f71c17e79 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY Makefile ./
COPY api api
COPY cmd cmd
COPY config/health config/health
COPY internal internal
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build WHAT='./cmd/agent ./cmd/controlplane' BIN=/out VERSION="$VERSION"

FROM scratch AS controlplane
COPY --from=build /out/controlplane /controlplane
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
ENTRYPOINT ["/controlplane"]

# Without a target, Docker builds the last stage.
FROM scratch AS agent
COPY --from=build /out/agent /agent
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
ENTRYPOINT ["/agent"]
